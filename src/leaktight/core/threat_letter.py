"""Threat letters: the threat models A to H of the literature, for whoever compares ours with those of papers."""

from __future__ import annotations

import dataclasses
from typing import Literal

from leaktight.core.threat import Knows, ThreatModel

Capability = Literal["updates", "basics", "training", "surrogate", "distribution", "manipulation", "selection"]
"""What an attacker may have.

Single updates; what everybody can assume of the data; how participants train; public data of the same kind; statistics
of a participant's own data; changes to the model or the protocol; the choice of who takes part.
"""

_SEATS = ("server", "wire")


@dataclasses.dataclass(frozen=True)
class Letter:
    """One threat model of the literature.

    Args:
        letter: A to H.
        name: what its source calls it.
        stars: how realistic its source takes it to be: 3 highly applicable and hard to detect, 1 less so.
        capabilities: what the attacker has.
    """

    letter: str
    name: str
    stars: int
    capabilities: frozenset[Capability]

    def __str__(self) -> str:
        return f"{self.letter} ({self.name}, {'★' * self.stars}{'☆' * (3 - self.stars)})"


_C: tuple[Capability, ...] = ("updates", "basics", "training")
LETTERS = tuple(
    Letter(letter, name, stars, frozenset[Capability](has))
    for letter, name, stars, has in (
        ("A", "eavesdropper", 3, _C[:1]),
        ("B", "informed eavesdropper", 3, _C[:2]),
        ("C", "parameter-aware eavesdropper", 3, _C),
        ("D", "data-enhanced eavesdropper", 2, (*_C, "surrogate")),
        ("E", "statistical-informed eavesdropper", 2, (*_C, "surrogate", "distribution")),
        ("F", "active manipulator", 1, (*_C, "manipulation")),
        ("G", "data-enhanced manipulator", 1, (*_C, "surrogate", "manipulation")),
        ("H", "active client manipulator", 1, (*_C, "surrogate", "manipulation", "selection")),
    )
)
"""All of them, from the least capable on."""

_GRANTED: dict[Knows, Capability] = {
    Knows.LOCAL_STEPS: "training",
    Knows.DEFENCE: "training",
    Knows.AUXILIARY: "surrogate",
}


def letter_of(threat: ThreatModel, active: bool = False) -> Letter | None:
    """Return the first of the threat models A to H that grants all that ours does; None where they do not speak of it.

    The letters and their capabilities are the source's. That ours are read so is our own choice: everybody here knows
    the shape and the range of examples and how many are behind a message (`basics`); who knows the defence knows how
    participants train. True labels, hints and class keys are none of the source's capabilities, so they change no
    letter and must be said beside it. Nothing here grants statistics of a participant's own data, or the choice of
    participants, so that nobody is an E or an H. The source speaks of federated learning and of attackers who see
    single updates: the parties of split learning, and a participant, who sees only what the server made of all updates,
    have no letter.

    Args:
        threat: where the attacker sits and what it knows.
        active: whether it changes what it sends.

    Example:
        >>> str(letter_of(ThreatModel(knows=frozenset({Knows.AUXILIARY}))))
        'D (data-enhanced eavesdropper, ★★☆)'
        >>> letter_of(ThreatModel(seat="feature-party")) is None
        True

    References:
        Carletti et al., SoK: Gradient Inversion Attacks in Federated Learning, USENIX Security 2025 (threat models).
    """
    if threat.seat not in _SEATS:
        return None
    granted = {_GRANTED[known] for known in threat.knows if known in _GRANTED}
    has: set[Capability] = {"updates", "basics", *granted, *(("manipulation",) if active else ())}
    return next(letter for letter in LETTERS if has <= letter.capabilities)
