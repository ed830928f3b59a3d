"""Notes: where our numbers and the published ones are not of the same thing."""

from __future__ import annotations

from leaktight.papers.class_keys.settings import CIFAR100, OLIVETTI, Scope
from leaktight.papers.paper import Order

SCORED = (
    "Samples count as recognised if a classifier that was learned from public test images assigns them to the victim's class; it may also say that a "
    "picture shows nothing. The paper's was learned from all images and has to choose a class. A generator that makes one picture only is recognised "
    "wholly or not at all, so that shares vary much between trainings: see `sample_diversity`, where 0 is a single picture. Whoever tries a random key has no "
    "say in which class it brings out: `recognised_any` counts all of the victim's."
)
CHOSEN = (
    "How the model and the generator are trained was chosen by the plain attack alone, on other seeds and classes than any in these tables. Of keys only "
    "the accuracy was looked at on such a seed, to see that their loss may keep its factor; no setting of these followed from an attack on keys."
)
BEYOND = (
    "The paper's attackers who know nothing of a key try a random one. Ours also estimates one from what the victim's updates do to its own fakes, which "
    "the paper does not try: it cannot choose whose class that brings out, so `recognised_any` is what to read. Its settings are the first that were "
    "tried, on other seeds than any in these tables."
)
OVERLAPS = "Overlaps must be within the intervals of theory at all dimensions together. Where theory is right, one seed in twenty fails this."
EACH = "Each seed attacks another class: intervals are over both. Several attackers at once are all after the first of these, under every seed."
ENDS = (
    "Accuracies over training are those of a model whose training ended there and whose keys were then revealed. The paper shows the mean accuracy of "
    "participants on classes of their own."
)
REGRESSED = (
    "Table 1 is made with the keys of the framework, random and on a fixed layer; the paper's are orthonormal, in the place of the last weights, and "
    "its networks have ten layers."
)
SCALED = "Keys have length 1 and the loss a factor of the root of their length, so that all frameworks share one learning rate."


def notes_of(scope: Scope, order: Order) -> list[str]:
    """Return what a reader of the tables must know, in sentences."""
    found = [SCORED, CHOSEN] if order.scale != "paper" else [SCORED]
    if any(min(study.seeds, len(study.victims)) > 1 for study in scope.studies):
        found.append(EACH)
    found += [BEYOND, OVERLAPS, ENDS, SCALED, REGRESSED]
    for one in scope.central:
        classes = one.data.load().classes if one.name == CIFAR100 else 100
        if classes != 100:
            found.append(
                f"The CIFAR-100 of the data folder has {classes} classes, the paper's 100: their accuracies cannot be compared."
            )
    if order.scale == "small" and OLIVETTI in [study.name for study in scope.studies]:
        found.append(
            "Olivetti Faces are brought to 32x32 here, learned by LeNet with ReLU, and attacked by one participant at a time, with keys of one length and at "
            "one distance; the paper's are 64x64. Their recogniser knows three pictures a person, and takes some patterns that show no face for somebody: "
            "look at the pictures before believing `recognised_any`."
        )
    return found
