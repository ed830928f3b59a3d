"""Notes: where our numbers and the published ones are not of the same thing."""

from __future__ import annotations

from leaktight.papers.layer_leakage.networks import VGG11NET
from leaktight.papers.layer_leakage.settings import Study
from leaktight.papers.layer_leakage.sources import LFW

INTERVALS = (
    "Intervals are over trainings where there are two or more seeds; of one training alone, that of an AUC is over messages, that of V-information "
    "over attackers on the same messages, and that of sensitivity over examples. Intervals and p-values of R take layers for independent pairs, "
    "as the paper does, which they are not."
)
FLAGS = (
    "The attributes of these faces are flags made by a machine, of which several or none may be set: classes are faces with exactly one of theirs, ages "
    "are four, and Black, Senior and black hair are those flags. Rare groups are over-represented in the archive that this was tried on."
)
SINGLE = (
    "The gradient of the first layer has fewer numbers than an image has pixels, so that by itself it cannot determine one; compare the columns "
    "`numbers` and `pixels` of the table `inversion`."
)

SPREAD = (
    "With two classes the gradients towards both are multiples of each other, so that the sensitivity of a layer is, for each example, the root of "
    "the mean square of the layer's gradient over its range, times a factor that all layers share: it says how evenly a gradient is spread."
)


def notes_of(study: Study) -> list[str]:
    """Return what a reader of the tables must know, in sentences."""
    found = [INTERVALS]
    if any(subject.data_set == LFW for subject in study.subjects):
        found.append(FLAGS)
    found += [SPREAD, SINGLE]
    sizes = {getattr(subject.data, "size", None) for subject in study.subjects if subject.data_set == LFW} - {None}
    if sizes:
        found.append(f"Faces are cut to their middle square and brought to {sizes.pop()} pixels a side; the paper's are 62x47.")
    found.append(
        f"In the table `mixed`, which is ours, a share of {study.mixed:g} of a batch with the property has it, and none of the others; everywhere else "
        "all of it has, as it seems to be in the paper."
    )
    if study.seat == "server":
        found.append(
            "The attacker sits at the server and sees the gradients of both participants; the paper's is one of the two, who can tell the other's "
            "by subtraction."
        )
    missing = VGG11NET not in study.compared and VGG11NET in study.networks
    if missing:
        found.append(f"Classifiers and random entries are compared on {' and '.join(study.compared)} alone.")
    return found
