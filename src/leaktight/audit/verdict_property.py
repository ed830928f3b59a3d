"""Verdicts about a private property: what the strongest attack tells of it, in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from leaktight.audit.label_leak import turned
from leaktight.audit.property_leak import GUESSING, PROPERTY_AUC, UNNAMED, tells_property, whence
from leaktight.audit.rows import Row, Tone
from leaktight.audit.words import capital, name_of, not_broken
from leaktight.core.metric import Reading

SEATS = {"server": "the server", "wire": "someone on the wire"}


def of_nothing(row: Row) -> str:
    """Say what leaks without a defence."""
    leak = _leak(row)
    if not leak.beats_chance() and not turned(leak):
        return (
            "Without defence, no attack tried told measurably better than guessing whether the examples behind a message "
            f"{_asked(row)}: AUC {_auc(leak)}, {_by(row)}. That does not show that none can: see the doubts."
        )
    return f"Without defence, from one shared message {_who(row)} tells whether its examples {_asked(row)} {_well(leak)}, {_by(row)}."


def of_defence(row: Row, base: Row | None, tone: Tone, attacks: Sequence[str]) -> str:
    """Say what still leaks under a defence, and what did without it.

    Args:
        row: the strongest attack against it.
        base: the strongest attack without it; None if there is none.
        tone: what the comparison showed.
        attacks: the attacks that were tried.
    """
    leak, name = _leak(row), capital(name_of(row.defence))
    before = "" if base is None else f", against {_leak(base).value:.2f} without it"
    if tone == "unbroken":
        return (
            f"{name} {not_broken(attacks)}: none told measurably better than guessing whether the examples behind a message "
            f"{_asked(row)}, AUC {_auc(leak)}{before}, {_by(row)}."
        )
    if tone == "unknown":
        why = (
            "nothing was told without it either, so nothing is shown"
            if base is not None
            else "without defence nothing was measured to compare with"
        )
        return f"{name}: whether examples {_asked(row)} was told {_well(leak)}, {_by(row)}; {why}."
    effect = "reduced the leak" if tone == "reduces" else "did not measurably stop the leak"
    tells = "still tells" if tone == "reduces" else "tells"
    said = f"{name} {effect}: from one shared message {_who(row)} {tells} whether its examples {_asked(row)}"
    return f"{said} {_well(leak)}{before}, {_by(row)}."


def _leak(row: Row) -> Reading:
    return row.leak or Reading(name=PROPERTY_AUC, value=GUESSING, chance=GUESSING)


def _who(row: Row) -> str:
    return SEATS.get(row.seat, f"the participant {row.seat}" if row.seat else "the attacker")


def _asked(row: Row) -> str:
    return row.asked or UNNAMED


def _auc(leak: Reading) -> str:
    interval = "" if leak.low is None or leak.high is None else f"{leak.low:.2f} to {leak.high:.2f}; "
    return f"{leak.value:.2f} ({interval}guessing gets {GUESSING if leak.chance is None else leak.chance:.2g})"


def _well(leak: Reading) -> str:
    return f"with an AUC of {_auc(leak)}" + (f", as good as {1 - leak.value:.2f} the other way round" if turned(leak) else "")


def _by(row: Row) -> str:
    """Name the attack and its setting; and a single layer, if its AUC is larger than what the row is judged by."""
    leak = _leak(row)
    single = [reading for reading in row.readings if tells_property(reading) and reading.value > leak.value]
    best = max(single, key=lambda reading: reading.value, default=None)
    alone = "" if best is None else f"{best.layer} alone {best.value:.2f}; "
    return f"by {row.attack} on {whence(leak)} ({alone}{row.moment})"
