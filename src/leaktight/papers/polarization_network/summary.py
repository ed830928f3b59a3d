"""What the page about this paper says beside numbers."""

from leaktight.papers.summary import Claim, Summary

SUMMARY = Summary(
    about=(
        "A party trains a second, secret head beside the public one, on the same features. The gradient that it"
        " shares then carries a secret perturbation. The paper claims that this hides images and labels as well"
        " as strong noise does, at no loss in accuracy."
    ),
    claims=(
        Claim(
            claim="Polarization keeps its accuracy where its perturbation exceeds the gradient.",
            published="Gaussian noise loses more than 20 points on CIFAR10 there, 5 on MNIST (4.2)",
            checks="Accuracy(SPN) - Accuracy(Gaussian) where the ratio is below 1",
        ),
        Claim(
            claim="Polarization has the best trade-off of accuracy and reconstruction error.",
            published="CAP(SPN) is above those of PPDL and DP (Fig. 1)",
            checks="CAP(SPN) - CAP(",
        ),
        Claim(
            claim="Federated training with polarization is more accurate than FedAvg.",
            published="2 to 3 points more on CIFAR10, about 0.2 on MNIST (4.3, Fig. 7)",
            checks="Accuracy(federated SPN) - Accuracy(FedAvg)",
            where=" clients",
        ),
        Claim(
            claim="The gradients of the secret loss go along with those of the public one.",
            published="cosines of -0.003 to 0.186 (Fig. 4)",
            checks="Cosine of the public and the private gradient",
        ),
        Claim(
            claim="Polarization hides labels from who reads the public head.",
            published="not measured",
            checks="Membership distance(SPN) of label reading",
            attacker="strongest",
        ),
        Claim(
            claim="It has the best trade-off also against the strongest attacker.",
            published="not measured",
            checks="CAP(SPN, strongest attacker) - CAP(",
            attacker="strongest",
        ),
        Claim(
            claim="At equal ratio and at equal accuracy it hides more of the images.",
            published="not measured",
            checks="rMSE(SPN) - rMSE(",
            attacker="strongest",
        ),
        Claim(
            claim="Noise on the public head as well hides labels (ours).",
            published="no such variant",
            checks="Labels hidden from every attack",
            attacker="strongest",
        ),
        Claim(
            claim="That noise costs little accuracy (ours).",
            published="no such variant",
            checks="Accuracy(head guarded) - Accuracy(SPN)",
            attacker="strongest",
        ),
    ),
    not_run=(
        "SVHN: it is not among our data; its files can be read.",
        "CIFAR100, VGG16, 20 to 100 clients, and 300 rounds or iterations: only the scale `paper` has them.",
        "An attacker who shares one sender's secrets over several rounds, in which its head is trained.",
    ),
)
