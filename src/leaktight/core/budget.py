"""Budgets: an epsilon with everything it needs to mean something. Only this file puts an epsilon into words.

A defence that accounts for differential privacy notes `NAME.epsilon` and `NAME.delta`, and what the account rests on:
`NAME.sample_rate` where batches came from Poisson sampling, `NAME.participations` where an example's steps were counted
without any sampling, `NAME.messages` where whole messages were. Under `NAME.attacked` the same is noted of messages
that only an audit asked for.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

EPSILON, DELTA, ATTACKED = "epsilon", "delta", "attacked"
SAMPLE_RATE, PARTICIPATIONS, REPEATS, MESSAGES = "sample_rate", "participations", "repeats", "messages"
_PARTS = (EPSILON, DELTA, SAMPLE_RATE, PARTICIPATIONS, REPEATS, MESSAGES)


@dataclasses.dataclass(frozen=True)
class Budget:
    """What one defence spent.

    Its text never shows epsilon without delta, the assumption, and what kind of number it is.

    Args:
        defence: the name that the defence notes under.
        epsilon: what was spent.
        delta: with which probability that may fail; None if nobody noted it, and then epsilon is not shown.
        assumption: what the account rests on; empty if nobody noted it, and then it is an estimate.
        attacked: whether it is about messages that only an audit asked for.
        whole_messages: whether whole messages were accounted for, and with them everything that they may tell; else
            single examples.

    Example:
        >>> print(Budget("dp_sgd", 2.1342, 1e-5, "Poisson sampling at rate 0.1"))
        epsilon at most 2.13 at delta 1e-05 (upper bound; Poisson sampling at rate 0.1)
        >>> print(Budget("mine", 2.1342, 1e-5, ""))
        epsilon about 2.13 at delta 1e-05 (estimate; how examples were drawn was not noted)
        >>> print(Budget("mine", 2.1342, None, ""))
        an epsilon without its delta, which bounds nothing
    """

    defence: str
    epsilon: float
    delta: float | None
    assumption: str
    attacked: bool = False
    whole_messages: bool = False

    @property
    def is_bound(self) -> bool:
        """Whether it bounds anything: a finite epsilon with its delta, by an account whose assumption is known."""
        return math.isfinite(self.epsilon) and self.delta is not None and bool(self.assumption)

    def __str__(self) -> str:
        where = "for the attacked messages alone, " if self.attacked else ""
        if self.delta is None:
            return f"{where}an epsilon without its delta, which bounds nothing"
        assumed = self.assumption or "how examples were drawn was not noted"
        if not math.isfinite(self.epsilon):
            return f"{where}epsilon is infinite at delta {self.delta:g} ({assumed}): no guarantee"
        kind, word = ("upper bound", "at most") if self.assumption else ("estimate", "about")
        return f"{where}epsilon {word} {self.epsilon:.3g} at delta {self.delta:g} ({kind}; {assumed})"


def budgets_of(notes: Mapping[str, float]) -> tuple[Budget, ...]:
    """Return each budget that a party noted, those of its training before those of attacked messages.

    Args:
        notes: numbers that a party noted, or the largest over parties.

    Example:
        >>> notes = {"dp_sgd.epsilon": 4.73, "dp_sgd.delta": 1e-5, "dp_sgd.participations": 3.0, "dp_sgd.clipped": 0.5}
        >>> print(*budgets_of(notes))
        epsilon at most 4.73 at delta 1e-05 (upper bound; no amplification by sampling: an example counts 3 times)
    """
    names = [name.rpartition(".")[0] for name in notes if name.rpartition(".")[2] == EPSILON]
    budgets = [_budget(name, notes) for name in names]
    return tuple(sorted(budgets, key=lambda budget: budget.attacked))


def other_notes(notes: Mapping[str, float]) -> dict[str, float]:
    """Return the notes that belong to no budget.

    Example:
        >>> other_notes({"dp_sgd.epsilon": 4.73, "dp_sgd.delta": 1e-5, "dp_sgd.clipped": 0.5})
        {'dp_sgd.clipped': 0.5}
    """
    names = {name.rpartition(".")[0] for name in notes if name.rpartition(".")[2] == EPSILON}
    parts = {_note(name, part) for name in names for part in _PARTS}
    return {name: value for name, value in notes.items() if name not in parts}


def _budget(name: str, notes: Mapping[str, float]) -> Budget:
    parts = {part: notes[_note(name, part)] for part in _PARTS if _note(name, part) in notes}
    defence, _, last = name.rpartition(".")
    attacked = last == ATTACKED
    spent, delta, assumed = parts[EPSILON], parts.get(DELTA), _assumption(parts, attacked)
    return Budget(defence if attacked else name, spent, delta, assumed, attacked, MESSAGES in parts)


def _assumption(parts: Mapping[str, float], attacked: bool) -> str:
    said = []
    if SAMPLE_RATE in parts:
        said.append(f"Poisson sampling at rate {parts[SAMPLE_RATE]:.3g}")
    if PARTICIPATIONS in parts:
        why = (
            "no amplification is claimed for batches that an audit fixed"
            if attacked
            else "no amplification by sampling"
        )
        times = "once" if parts[PARTICIPATIONS] == 1 else f"{parts[PARTICIPATIONS]:g} times"
        repeated = f", up to {parts[REPEATS]:g} times in one batch" if parts.get(REPEATS, 1) > 1 else ""
        said.append(f"{why}: an example counts {times}{repeated}")
    if MESSAGES in parts:
        said.append(f"whole messages, {parts[MESSAGES]:g} of one participant, so that no sampling is assumed")
    return "; ".join(said)


def _note(name: str, part: str) -> str:
    return f"{name}.{part}" if name else part
