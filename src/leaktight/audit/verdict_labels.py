"""Verdicts about labels: what the strongest attack of split learning tells of them, in sentences."""

from __future__ import annotations

from typing import Literal

from leaktight.audit.label_leak import GUESSING, TAIL, place_of
from leaktight.audit.rows import Row
from leaktight.audit.words import capital, name_of
from leaktight.core.metric import Reading

MEANS = {
    "gradient_norm": "from the length of gradients alone",
    "direction": "from the direction of gradients, with one known positive",
    "inner_product": "from inner products of gradients, with a known positive",
    "few_hints": "from gradients, with a few known labels",
    "clustering": "by dividing the gradients in two, without any known label",
}
"""What each attack needs, in words."""
SEATS = {"feature-party": "the feature party", "wire": "someone on the wire", "label-party": "the label party"}


def of_nothing(row: Row) -> str:
    """Say what leaks without a defence."""
    leak = _leak(row)
    who = _who(row)
    if not leak.beats_chance():
        return (
            f"Without defence, no attack tried told labels measurably better than guessing: AUC {leak.value:.2f} {_guessing(leak)} ({_detail(row)}). "
            "That does not show that none can: see the doubts."
        )
    return (
        f"Without defence, {who} can tell positive from negative labels with AUC {leak.value:.2f} {_how(row)} ({_detail(row)})."
    )


def of_defence(row: Row, base: Row | None, tone: Literal["leaks", "reduces", "stops", "unknown"]) -> str:
    """Say what still leaks under a defence, and what did without it.

    Args:
        row: the strongest attack against it.
        base: the strongest attack without it; None if there is none.
        tone: what the comparison showed.
    """
    leak, name, who = _leak(row), capital(name_of(row.defence)), _who(row)
    before = "" if base is None else f", against {_leak(base).value:.2f} without it"
    if tone == "stops":
        said = f"{name} stopped every attack tried: none told labels measurably better than guessing, AUC {leak.value:.2f} {_guessing(leak)}{before}"
        said += "" if leak.high is None else f"; up to {leak.high:.2f} is possible, by the 95 % interval"
    elif tone == "unknown":
        why = (
            "but nothing was told without it either, so nothing is shown"
            if base is not None
            else "without defence nothing was measured to compare with"
        )
        said = f"{name}: labels were told with AUC {leak.value:.2f} {_guessing(leak)}; {why}"
    else:
        effect = "reduced the leak" if tone == "reduces" else "did not measurably stop the leak"
        still = "can still" if tone == "reduces" else "can"
        said = f"{name} {effect}: {who} {still} tell labels with AUC {leak.value:.2f} {_how(row)}{before}"
    return f"{said} ({_detail(row)})."


def _leak(row: Row) -> Reading:
    return row.leak or Reading(name="leak_auc", value=GUESSING, chance=GUESSING)


def _who(row: Row) -> str:
    return SEATS.get(row.seat, "the attacker")


def _how(row: Row) -> str:
    return MEANS.get(row.kind, "from the gradients")


def _guessing(leak: Reading) -> str:
    return f"where guessing gets {GUESSING if leak.chance is None else leak.chance:.2f}"


def _detail(row: Row) -> str:
    leak = _leak(row)
    tail = next((r for r in row.readings if r.name == TAIL and r.layer == leak.layer), None)
    worst = [] if tail is None else [f"95 % quantile over steps {tail.value:.2f}"]
    chance = [f"guessing gets {leak.chance:.2f}"] if leak.chance is not None and leak.beats_chance() else []
    return "; ".join([*worst, *chance, f"{row.attack}, {place_of(leak)}", row.moment])
