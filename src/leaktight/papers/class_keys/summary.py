"""What the page about this paper says beside numbers."""

from leaktight.papers.summary import Claim, Summary

SUMMARY = Summary(
    about=(
        "Each participant has a secret key for each of its classes, and the network is trained to answer with "
        "keys. The paper claims that another participant, who runs a GAN against the shared model, learns "
        "nothing of classes whose keys it lacks."
    ),
    claims=(
        Claim(
            claim="A GAN attack works on plain collaborative training.",
            published="Recognisable images (5.3, Fig. 4)",
            checks="Samples recognised as the victim's class, plain framework",
        ),
        Claim(
            claim="It works with the exact key of a class.",
            published="High visual similarity (5.3 I, Fig. 4)",
            checks="Samples recognised as the victim's class, exact key",
        ),
        Claim(
            claim="It fails with random keys.",
            published="0 % recognised on MNIST (5.3 III, Fig. 6)",
            checks="Samples recognised as the victim's class, random key",
        ),
        Claim(
            claim="Keys keep the accuracy of the plain framework, and of cross entropy.",
            published="Similar in the end (5.2, Fig. 3); 94.8 beside 94.0 % on CIFAR-10 (Table 1)",
            checks="Accuracy(",
        ),
        Claim(
            claim="It fails also with keys that are estimated from updates.",
            published="not measured",
            checks="Samples recognised as any class of the victim beyond those of another random key, estimated key",
            attacker="strongest",
        ),
    ),
    not_run=(
        "CIFAR-10 and CIFAR-100 as a whole: our data have parts of them.",
        "Turns of whole epochs on digits, and hundreds of generator steps in each: only the scale `paper` has them.",
        "Several attackers on keys of 16,384, faces under keys of four lengths, and estimates of keys of 16,384 or of "
        "faces: only the scale `paper` has them.",
    ),
)
