"""What is compared: frameworks with and without keys, other defences, and what the attacker knows of a key."""

from __future__ import annotations

from leaktight.attacks.gan import GanAttack
from leaktight.core.defence import Defence, Undefended
from leaktight.core.probe import Attempt
from leaktight.core.threat import ThreatModel
from leaktight.defences.class_keys import ClassKeys
from leaktight.defences.gaussian import GaussianNoise
from leaktight.defences.polarization import Polarization
from leaktight.defences.top_k import TopK
from leaktight.metrics.generated import (
    Recognised,
    RecognisedAny,
    RecognisedBest,
    RecognisedConfidence,
    RecognisedMedian,
)
from leaktight.metrics.key_cosine import KeyCosine
from leaktight.metrics.sample_distance import MeanPicture, NearestAny, NearestPrivate, SampleDiversity

PLAIN = "plain"
EXACT, RANDOM, ESTIMATED = "exact key", "random key", "estimated key"
ATTACKER = "client-1"
"""Whose seat the attacker takes: the victim is the participant before it."""
SHARES = (
    "recognised",
    "recognised_any",
    "recognised_confidence",
    "recognised_median",
    "recognised_best",
    "nearest_private",
    "nearest_any",
)
RATIOS = ("mean_picture", "sample_diversity")
"""What samples are scored by: shares, and numbers that may be above 1."""


def keys_of(dimensions: int, fixed: bool = True) -> str:
    """Return the name of the framework with keys.

    Example:
        >>> keys_of(4096), keys_of(128, fixed=False)
        ('keys of 4,096', 'keys of 128, learned layer')
    """
    return f"keys of {dimensions:,}{'' if fixed else ', learned layer'}"


def frameworks(fixed: tuple[int, ...], learned: tuple[int, ...] = ()) -> dict[str, Defence]:
    """Return the plain framework and those with keys, by name: on a fixed layer, and on one that is learned."""
    return {
        PLAIN: Undefended(),
        **{keys_of(dimensions): ClassKeys(dimensions=dimensions) for dimensions in fixed},
        **{keys_of(dimensions, fixed=False): ClassKeys(dimensions=dimensions, fixed=False) for dimensions in learned},
    }


def other_defences(noises: tuple[float, ...], shares: tuple[float, ...]) -> dict[str, Defence]:
    """Return defences that were not made for this attack, by name; none where neither noise nor sharing is compared.

    Example:
        >>> list(other_defences((0.001,), (0.1,)))
        ['noise 0.001', 'top-k 0.1', 'polarization']
    """
    return {
        **{f"noise {std:g}": GaussianNoise(std=std) for std in noises},
        **{f"top-k {share:g}": TopK(share=share) for share in shares},
        **({"polarization": Polarization()} if noises or shares else {}),
    }


def key_at(distance: float) -> str:
    """Return the name of an attack with a key at this distance from the victim's."""
    return f"key at {distance:g}"


def guesses(attack: GanAttack, distances: tuple[float, ...]) -> dict[str, GanAttack]:
    """Return the attack by how near its key is to the victim's: the exact one, then at each distance.

    None has a random key beside it: who knows of a key has a say in which class it brings out.
    """
    knowing = attack.model_copy(update={"controls": 0})
    attacks = {EXACT: knowing.model_copy(update={"class_key": "exact"})}
    for distance in distances:
        attacks[key_at(distance)] = knowing.model_copy(update={"class_key": "distance", "distance": distance})
    return attacks


def attempt(attack: GanAttack, seat: str = ATTACKER) -> Attempt:
    """Return the attack from a seat with no more knowledge than it needs, and its scores."""
    recognised = Recognised(), RecognisedAny(), RecognisedConfidence(), RecognisedMedian(), RecognisedBest()
    near = NearestPrivate(), NearestAny(), MeanPicture(), SampleDiversity(), KeyCosine()
    return Attempt(attack=attack, threat=ThreatModel(seat=seat, knows=attack.needs), metrics=(*recognised, *near))
