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
            claim="Federated training with polarization is as accurate as FedAvg, or more.",
            published="2 to 3 points more on CIFAR10, about 0.2 on MNIST (4.3, Fig. 7)",
            checks="Accuracy(federated SPN) - Accuracy(FedAvg)",
        ),
        Claim(
            claim="Polarization hides labels from who reads the public head.",
            published="not measured",
            checks="Membership distance(SPN) of label reading",
            attacker="strongest",
        ),
        Claim(
            claim="It has the best trade-off also where the attacker knows the mechanism.",
            published="not measured",
            checks="CAP(SPN, adaptive attacker) - CAP(",
            attacker="strongest",
        ),
    ),
    not_run=("SVHN: it is not among our data.",),
)
