"""What the page about this paper says beside numbers."""

from leaktight.papers.summary import Claim, Summary

SUMMARY = Summary(
    about=(
        "Participants train on images that went through a policy of transformations. The paper searches "
        "policies by two scores that need no attack, and claims that gradients then reveal little of the images"
        " at almost no loss in accuracy."
    ),
    claims=(
        Claim(
            claim="The hybrid of two searched policies lowers the PSNR of a reconstruction.",
            published="13.88 to 7.64 dB on CIFAR100 with ResNet20 (Table 1)",
            checks="PSNR above chance(none) - that(hybrid) in dB, ",
        ),
        Claim(
            claim="It costs almost no accuracy.",
            published="76.88 to 77.92 % (Table 1)",
            checks="Accuracy(hybrid) - accuracy(none)",
        ),
        Claim(
            claim="Random policies do not have this effect.",
            published="Random policies fail to invalidate attacks (5.3, Table 1)",
            checks="PSNR above chance(random)",
        ),
        Claim(
            claim="The privacy score predicts the PSNR of an attack.",
            published="R = 0.697 over 100 policies (4.2, Fig. 2)",
            checks="R(privacy score by the cosine ",
        ),
        Claim(
            claim="It lowers the PSNR of the original image too, for an attacker who knows the policy.",
            published="not measured; left as future work (6)",
            checks="PSNR of the original above chance(none) - that(hybrid",
            attacker="strongest",
        ),
    ),
    not_run=(
        "CIFAR-100 as a whole: our data have six of its classes.",
        "ResNet20 and ConvNet of full width, and 200 epochs: only the scale `paper` has them.",
    ),
)
