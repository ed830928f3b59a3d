"""Privacy-preserving Collaborative Learning with Automatic Transformation Search: train on transformed images alone.

Policies of image transformations that are searched by two scores, and what attacks find of images that went through
them. Ten participants train by federated SGD on transformed images alone; attacks see the gradient of one image, and
are given its label: at the end of the training, but before it at the smaller scales. `searches.prepare` searches the
policies, the audits measure them.

Differs from the paper: PSNR is also taken against the original image, and two attackers know the policy. Fig. 2 is
measured on one undefended training run whose messages are made anew under each policy. There is no weight decay. The
scales `smoke` and `small` have smaller networks and data, fewer iterations, shorter training runs and no crop and flip;
`scales` says which. The tables `adaptive`, `privacy_aware` and `networks` are ours. Pictures as in Fig. 4 are in the
reports of the audits.

References:
    Gao et al., "Privacy-preserving Collaborative Learning with Automatic Transformation Search", 2021, sections 4 to 6.
"""

from __future__ import annotations

from leaktight.papers.paper import Paper
from leaktight.papers.transformation_search import (
    adaptive,
    attacks,
    correlation,
    defences,
    functions,
    networks,
    points,
    policies,
    privacy_aware,
    similarity,
    training,
    transfer,
)
from leaktight.papers.transformation_search.scales import RESNET, Study, describe_cut, study_of
from leaktight.papers.transformation_search.searches import prepare
from leaktight.papers.transformation_search.summary import SUMMARY

INTERVALS = (
    "Intervals are over training runs where there are two or more seeds, and those of a drop or a change compare runs "
    "of the same seed; of one run alone, that of PSNR is over images and that of accuracy over test images."
)
TRANSFORMED = (
    "`psnr` is against the image that was trained on, as in the paper; `psnr_original` is against the image as its "
    "owner has it. `chance` is the PSNR against the former of the best answer that needs no gradient, such as the mean "
    "image: a PSNR below it says that the attack failed, not by how much, and a policy that makes images darker or "
    "brighter moves it."
)
INITIAL = (
    "Models are attacked before their training, and accuracies are of its end: who sees every round chooses the "
    "moment, and in trials on CIFAR10 without a defence the attack reached 26 dB there, 15 dB after a third of an "
    "epoch and, after one, no more than the mean image. The tables `points` and `correlation` have three moments."
)
PICTURES = "Pictures as in Fig. 4 are in the report of each audit: `leaktight report` with its folder."


def _notes(study: Study) -> list[str]:
    """Say what was searched, what is smaller than in the paper, and what the columns mean."""
    notes = [f"Searched for {name}: {policy}." for name, policy in study.hybrids.items()]
    if all(subject.network != RESNET for subject in study.subjects):
        names = " and ".join(dict.fromkeys(subject.network for subject in study.subjects))
        notes.append(
            f"The network is {names}, after {study.epochs} epochs; the paper's are ResNet20 and ConvNet after 200, "
            "with crop, flip and weight decay."
        )
    if study.attacked == "initial":
        notes.append(INITIAL)
    return [*notes, INTERVALS, TRANSFORMED, PICTURES]


PAPER: Paper[Study] = Paper(
    name="transformation-search",
    title="Privacy-preserving Collaborative Learning with Automatic Transformation Search (Gao et al. 2021)",
    setup=study_of,
    experiments=tuple(
        module.EXPERIMENT
        for module in (
            policies,
            attacks,
            defences,
            transfer,
            correlation,
            points,
            training,
            functions,
            similarity,
            adaptive,
            privacy_aware,
            networks,
        )
    ),
    cut=describe_cut,
    notes=_notes,
    prepare=prepare,
    summary=SUMMARY,
)
