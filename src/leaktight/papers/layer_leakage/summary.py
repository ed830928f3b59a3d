"""What the page about this paper says beside numbers."""

from leaktight.papers.summary import Claim, Summary

SUMMARY = Summary(
    about=(
        "Which layer's gradient tells an attacker a property of the examples? The paper measures V-information "
        "and sensitivity of each layer, and claims that both predict where property inference succeeds: at the "
        "first fully connected layer. It proposes to protect it, and compares no mechanisms."
    ),
    claims=(
        Claim(
            claim="V-information is highest at the first fully connected layer.",
            published="Layer 4 of AlexNet, 9 or 10 of VGG11Net (6.1, Fig. 2)",
            checks="V-information(best layer at or next to the first linear one)",
        ),
        Claim(
            claim="Property inference succeeds most there.",
            published="The same pattern (6.2, Fig. 3)",
            checks="Property AUC(best layer at or next to the first linear one)",
        ),
        Claim(
            claim="V-information predicts the AUC of property inference.",
            published="R = 0.951 over all networks (Table 1)",
            checks="R(V-information, property AUC), ",
        ),
        Claim(
            claim="Sensitivity predicts it where there are convolutions.",
            published="R = 0.707 (AlexNet) and 0.686 (VGG11Net) (Table 1)",
            checks="R(sensitivity, property AUC), ",
        ),
        Claim(
            claim="The first layer matters most to a reconstruction.",
            published="It tends to be the most important one (9.2, Fig. 10)",
            checks="rMSE(best other layer alone) - rMSE(first layer alone)",
        ),
    ),
    not_run=(
        "CelebA and PubFig: they are not among our data.",
        "Faces of 62x47, and 3,000 rounds: only the scale `paper` has them.",
    ),
)
