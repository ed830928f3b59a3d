"""Key Protected Classification for Collaborative Learning: who has no key of a class cannot learn to picture it.

The GAN attack on the plain collaborative framework and on class keys, with what the attacker knows of a key, and what
keys cost. Every number is the mean over seeds, with its t-interval where there are two or more; each seed attacks
another class, but several attackers at once are always after the first.

Differs from the paper: It shows pictures; here samples are scored (`metrics.generated`). Participants take two steps in
a turn at the scales `smoke` and `small`, on part of MNIST, and the generator is small and trained by Adam. Accuracy
over training is that of the joint model after a reveal at that moment. Other defences beside keys are ours, and so is
the attacker who estimates keys. The attackers of Fig. 6 are all participants but one, who is attacked. Fig. 8 takes the
limit of gradient descent, the normalised sum of both keys. Table 1 has our networks, and keys on a fixed layer.
`scales` and the notes have the rest.

References:
    Sariyildiz, Cinbis and Ayday, "Key Protected Classification for Collaborative Learning", Pattern Recognition 2020,
    sections 4.3 and 5.
"""

from __future__ import annotations

from leaktight.papers.class_keys import (
    distances,
    gan_attack,
    key_overlap,
    learning,
    other_defences,
    regression,
    several_attackers,
    shared_classes,
    shared_keys,
)
from leaktight.papers.class_keys.scales import OLIVETTI, Scope, describe_cut, missing_sets, scope_of
from leaktight.papers.class_keys.summary import SUMMARY
from leaktight.papers.paper import Paper

SCORED = (
    "Samples count as recognised if a classifier that was learned from public test images assigns them to the victim's "
    "class; it may also say that a picture shows nothing. The paper's was learned from all images and has to choose a "
    "class. A generator that makes one picture only is recognised wholly or not at all, so that shares vary much "
    "between training runs: see `sample_diversity`, where 0 is a single picture. Whoever tries a random key has no say "
    "in which class it brings out: `recognised_any` counts all of the victim's."
)
CHOSEN = (
    "How the model and the generator are trained was chosen by the plain attack alone, on other seeds and classes than "
    "any in these tables. Of keys only the accuracy was looked at on such a seed, to see that their loss may keep its "
    "factor; no setting of these followed from an attack on keys."
)
EACH = (
    "Each seed attacks another class: intervals are over both. Several attackers at once are all after the first of "
    "these, under every seed."
)
FACES = (
    "Olivetti Faces are brought to 32x32 here, learned by LeNet with ReLU, and attacked by one participant at a time, "
    "with keys of one length and at one distance; the paper's are 64x64. Their recogniser knows three pictures a "
    "person, and takes some patterns that show no face for somebody: look at the pictures before believing "
    "`recognised_any`."
)


def _notes(scope: Scope) -> list[str]:
    """Say how samples are scored, how settings were chosen, whom a seed attacks, and what the faces are."""
    notes = [SCORED, CHOSEN] if scope.scale != "paper" else [SCORED]
    if any(min(study.seeds, len(study.victims)) > 1 for study in scope.studies):
        notes.append(EACH)
    if scope.scale == "small" and any(study.name == OLIVETTI for study in scope.studies):
        notes.append(FACES)
    return notes


PAPER: Paper[Scope] = Paper(
    name="class-keys",
    title="Key Protected Classification for Collaborative Learning (Sariyildiz et al. 2020)",
    setup=scope_of,
    experiments=tuple(
        module.EXPERIMENT
        for module in (
            key_overlap,
            learning,
            gan_attack,
            distances,
            several_attackers,
            other_defences,
            shared_keys,
            shared_classes,
            regression,
        )
    ),
    cut=describe_cut,
    missing_sets=missing_sets,
    notes=_notes,
    summary=SUMMARY,
)
