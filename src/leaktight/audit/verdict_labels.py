"""Verdicts about labels: what the strongest attack of split learning tells of them, in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from leaktight.audit.label_leak import GUESSING, place_of, turned
from leaktight.audit.rows import Row, Tone
from leaktight.audit.words import capital, name_of, not_broken
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
    if _seldom(row):
        return (
            f"Without defence, {who} can tell positive from negative labels {_worst_steps(row)} {_how(row)} ({_detail(row)})."
        )
    if turned(leak):
        return (
            f"Without defence, {who} can tell positive from negative labels with AUC {leak.value:.2f}, which is as good as {1 - leak.value:.2f} "
            f"to whom it is known that larger scores mean negatives, {_how(row)} ({_detail(row)})."
        )
    if not leak.beats_chance():
        return (
            f"Without defence, no attack tried told labels measurably better than guessing: AUC {leak.value:.2f} {_guessing(leak)} ({_detail(row)}). "
            "That does not show that none can: see the doubts."
        )
    return (
        f"Without defence, {who} can tell positive from negative labels with AUC {leak.value:.2f} {_how(row)} ({_detail(row)})."
    )


def of_defence(row: Row, base: Row | None, tone: Tone, attacks: Sequence[str]) -> str:
    """Say what still leaks under a defence, and what did without it.

    Args:
        row: the strongest attack against it.
        base: the strongest attack without it; None if there is none.
        tone: what the comparison showed.
        attacks: the attacks that were tried.
    """
    leak, name, who = _leak(row), capital(name_of(row.defence)), _who(row)
    before = "" if base is None else f", against {_leak(base).value:.2f} without it"
    if tone == "unbroken":
        said = f"{name} {not_broken(attacks)}: none told labels measurably better than guessing, AUC {leak.value:.2f} {_guessing(leak)}{before}"
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
        well = _worst_steps(row) if _seldom(row) else f"with AUC {leak.value:.2f}"
        well += f", which is as good as {1 - leak.value:.2f} the other way round," if turned(leak) else ""
        said = f"{name} {effect}: {who} {still} tell labels {well} {_how(row)}{before}"
    return f"{said} ({_detail(row)})."


def _leak(row: Row) -> Reading:
    return row.leak or Reading(name="leak_auc", value=GUESSING, chance=GUESSING)


def _seldom(row: Row) -> bool:
    """Return whether labels are told in the worst steps, but not in the median step."""
    return row.tail is not None and row.tail.beats_chance() and not _leak(row).beats_chance() and not turned(row.leak)


def _worst_steps(row: Row) -> str:
    tail = row.tail or _leak(row)
    return f"in the worst steps (AUC {tail.value:.2f} {_guessing(tail)}; in the median step {_leak(row).value:.2f})"


def _who(row: Row) -> str:
    return SEATS.get(row.seat, "the attacker")


def _how(row: Row) -> str:
    return MEANS.get(row.kind, "from the gradients")


def _guessing(leak: Reading) -> str:
    return f"where guessing gets {GUESSING if leak.chance is None else leak.chance:.2f}"


def _detail(row: Row) -> str:
    leak = _leak(row)
    worst = [] if row.tail is None else [f"95 % quantile over steps {row.tail.value:.2f}"]
    chance = [f"guessing gets {leak.chance:.2f}"] if leak.chance is not None and leak.beats_chance() else []
    return "; ".join([*worst, *chance, f"{row.attack}, {place_of(leak)}", row.moment])
