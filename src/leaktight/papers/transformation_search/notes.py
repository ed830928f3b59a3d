"""Notes: where our numbers and the published ones are not of the same thing."""

from __future__ import annotations

from leaktight.attacks.presets import preset
from leaktight.papers.transformation_search.plans import ATTACK, Found
from leaktight.papers.transformation_search.settings import RESNET, VARIANTS, Study

INTERVALS = (
    "Intervals are over trainings where there are two or more seeds, and those of a drop or a change compare trainings of the same seed; of one "
    "training alone, that of PSNR is over images and that of accuracy over test images."
)
TRANSFORMED = (
    "`psnr` is against the image that was trained on, as in the paper; `psnr_original` is against the image as its owner has it. `chance` is the "
    "PSNR against the former of the best answer that needs no gradient, such as the mean image: a PSNR below it says that the attack failed, not "
    "by how much, and a policy that makes images darker or brighter moves it."
)
ADAPTIVE = (
    "The second attacker of the table `adaptive` knows the policy, searches for the original image through each possible transformation with a "
    "generic prior of pictures, and starts from the mean public image of the class; what it finds is to be read off `psnr_original`. The paper "
    "has none."
)
NOISE = "Gaussian and Laplace noise have a standard deviation and a scale of 0.001 and 0.01; the paper writes N(0, 0.001), which may mean a variance."
COUNTERFACTUAL = (
    "Scores and attacks of the tables `points` and `correlation` are on one undefended training, whose gradients are made anew under each policy; "
    "its semi-trained model is that after a tenth of the rounds."
)
INITIAL = (
    "Models are attacked before their training, and accuracies are of its end: who sees every round chooses the moment, and in trials on CIFAR10 "
    "without a defence the attack reached 26 dB there, 15 dB after a third of an epoch and, after one, what the mean image tells. The tables `points` "
    "and `correlation` have three moments."
)
NETWORKS = (
    "The table `networks` is on CIFAR10 and a ConvNet of an eighth of the paper's width, after one epoch of an undefended training. Where PSNR is below "
    "`chance` even with no policy, the attack failed, and PSNR under a policy says nothing of what the policy hides: it changes with how far the policy "
    "moves images from whatever the attack ends at. The published numbers are of CIFAR100 and wider networks, which we did not attack."
)
PICTURES = "Pictures as in Fig. 4 are in the report of each audit: `leaktight report` with its folder."


def notes_of(study: Study, found: Found) -> list[str]:
    """Return what a reader of the tables must know, in sentences."""
    told = [f"Searched for {name}: {policy}." for name, policy in found.items()]
    whole = preset(VARIANTS[ATTACK]).to_dict()["iterations"]
    if study.attack.iterations < whole:
        told.append(
            f"Attacks take {study.attack.iterations} iterations in Tables 1, 3 and 4, {study.compared_attack.iterations} in Fig. 2, "
            f"{study.variants.iterations} ({study.variants.lbfgs} of L-BFGS, from at most {study.variants.restarts} starts) in Table 2 and "
            f"{study.adaptive.iterations} where the policy is known; the paper's take {whole}, and 2500 in Fig. 2."
        )
    if study.other is not None:
        told.append(f"Attacks of the table `networks` take {study.other_attack.iterations} iterations.")
    if all(one.network != RESNET for one in study.subjects):
        networks = " and ".join(dict.fromkeys(one.network for one in study.subjects))
        told.append(
            f"The network is {networks}, after {study.epochs} epochs; the paper's are ResNet20 and ConvNet after 200, with crop, flip and weight decay."
        )
    if study.attacked == "initial":
        told.append(INITIAL)
    if study.other is not None:
        told.append(NETWORKS)
    told += [INTERVALS, TRANSFORMED, ADAPTIVE, COUNTERFACTUAL, NOISE, PICTURES]
    return told
