"""Key Protected Classification for Collaborative Learning: who has no key of a class cannot learn to picture it.

The GAN attack on the plain collaborative framework and on class keys, with what the attacker knows of a key, and what
keys cost. Every number is the mean over seeds, with its t-interval where there are two or more; each seed attacks
another class, but several attackers at once are always after the first.

Differs from the paper: It shows pictures; here samples are scored (`metrics.generated`). Participants take two steps in
a turn on digits at the scales `smoke` and `small`, on part of MNIST, and the generator is small and trained by Adam.
Other defences beside keys are ours, and so are the attacker who estimates keys and the random keys that everything is
compared with. The attackers of Fig. 6 are all participants but one, who is attacked, each in turn. Fig. 8 takes the
limit of gradient descent, the normalised sum of both keys. Each participant keeps moments of its own.
`scales` and the notes have the rest.

References:
    Sariyildiz, Cinbis and Ayday, "Key Protected Classification for Collaborative Learning", Pattern Recognition 2020,
    sections 4.3 and 5.
"""

from __future__ import annotations

from leaktight.papers.class_keys import (
    distances,
    estimated_keys,
    gan_attack,
    key_images,
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
    "Samples count as recognised if three unlike classifiers that were learned from public test images assign them to "
    "the victim's class on average; they may also say that a picture shows nothing, and know the textures of "
    "generators as such. The paper's was learned from all images and has to choose a class. A generator that makes "
    "one picture only is recognised wholly or not at all, so that shares vary much between training runs: see "
    "`sample_diversity`, where 0 is a single picture, and `recognised_median` and `recognised_best` over the rounds "
    "that were kept. Whoever tries a random key has no say in which class it brings out: `recognised_any` counts all "
    "of the victim's, and says nothing by itself. `recognised_any_chance` is what public examples get or, where a key "
    "is estimated, samples of a random key beside it, and `beyond_any` the difference. `mean_picture` above 1 says "
    "that samples are farther from everything private than the mean of public pictures of the class is."
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
    "Olivetti Faces are learned by a small network with instance norm and attacked by one participant at a time. "
    "Their recognisers know three pictures a person: look at the pictures before believing them. Keys of faces are not "
    "estimated at this scale, and keys of two lengths are tried; the paper's Fig. 7 has four."
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
            key_images,
            learning,
            gan_attack,
            estimated_keys,
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
