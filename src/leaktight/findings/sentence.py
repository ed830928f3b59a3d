"""Sentences: a judgement in words, for a reader who knows no attack by name."""

from __future__ import annotations

from collections.abc import Sequence

from leaktight.captures import AsCaptured
from leaktight.core.defence import is_undefended
from leaktight.core.display import capital, join_words, points
from leaktight.core.metric import Reading
from leaktight.findings.display import name_of
from leaktight.findings.rows import Row
from leaktight.findings.strongest import strongest
from leaktight.findings.utility import is_ignorant, no_better, utility_name
from leaktight.findings.verdict import Judgement


def sentence_of(judgement: Judgement) -> str:
    """Say what was found: the defence, the word, and what it rests on."""
    return f"{capital(name_of(judgement.defence))}: {judgement.status}. {reasons_of(judgement)}"


def reasons_of(judgement: Judgement) -> str:
    """Say what was read, by whom, what the word rests on, then the price."""
    kind, worst = judgement.kind, judgement.worst
    said = [
        f"{_clause(judgement)} ({kind.detail(worst)}).",
        *_others(judgement),
        *_signs(judgement),
        *_luck(judgement),
        *_basis(judgement),
        *_say_gain(judgement),
    ]
    if worst.useless:
        said.append(_say_ignorant(judgement))
    if not is_undefended(judgement.defence) and not judgement.beside and not kind.unjudged:
        # What senders of captured messages did to their model, nobody can measure.
        priced = worst.loss is not None or not isinstance(judgement.defence, AsCaptured)
        said += [*([_price(worst)] if priced else []), *_budget(worst)]
    return " ".join(said)


def _clause(judgement: Judgement) -> str:
    kind, base = judgement.kind, judgement.base
    bare = "where nothing is done to them" if isinstance(judgement.defence, AsCaptured) else "without it"
    before = "" if base is None else f", against {kind.short(base)} {bare}"
    return f"{capital(kind.clause(judgement.worst))}{before}"


def cost_of(loss: Reading | None) -> str:
    """Say what a defence costs in accuracy, with its interval; what is gained is no cost.

    Example:
        >>> cost_of(Reading(name="accuracy_loss", value=0.031, low=0.01, high=0.052))
        '3.1 points of accuracy (95 % interval 1.0 to 5.2)'
        >>> cost_of(Reading(name="accuracy_loss", value=-0.002, low=-0.008, high=0.004))
        'no cost seen (95 % interval -0.8 to 0.4 points of accuracy)'
        >>> cost_of(Reading(name="accuracy_loss", value=-0.02, low=-0.03, high=-0.01))
        'nothing, 2.0 points of accuracy were gained (95 % interval 1.0 to 3.0)'
    """
    if loss is None:
        return "its cost in accuracy was not measured"
    name = utility_name(loss)
    if loss.low is None or loss.high is None:
        said = f"{points(loss.value)} points of {name}"
        return f"no cost seen ({said})" if is_free(loss) and loss.value < 0 else said
    if loss.high < 0:
        interval = f"95 % interval {points(-loss.high)} to {points(-loss.low)}"
        return f"nothing, {points(-loss.value)} points of {name} were gained ({interval})"
    interval = f"95 % interval {points(loss.low)} to {points(loss.high)}"
    if is_free(loss):
        return f"no cost seen ({interval} points of {name})"
    return f"{points(loss.value)} points of {name} ({interval}{', so perhaps nothing' if loss.low <= 0 else ''})"


def is_free(loss: Reading) -> bool:
    """Return whether no cost was seen: as printed, the price is not above 0."""
    return points(loss.value).startswith(("-", "0.0"))


def price_words(loss: Reading) -> str:
    """Return a price with its interval, in points.

    Example:
        >>> price_words(Reading(name="accuracy_loss", value=0.031, low=0.01, high=0.052))
        '3.1 (1.0 to 5.2)'
        >>> price_words(Reading(name="accuracy_loss", value=-0.002, low=-0.008, high=0.004))
        'none seen (-0.8 to 0.4)'
        >>> price_words(Reading(name="accuracy_loss", value=-0.02, low=-0.03, high=-0.01))
        '2.0 gained (1.0 to 3.0)'
    """
    known = loss.low is not None and loss.high is not None
    if loss.high is not None and loss.high < 0:
        ends = f" ({points(-loss.high)} to {points(-(loss.low or 0.0))})" if known else ""
        return f"{points(-loss.value)} gained{ends}"
    around = f" ({points(loss.low)} to {points(loss.high)})" if loss.low is not None and loss.high is not None else ""
    return f"{'none seen' if is_free(loss) else points(loss.value)}{around}"


def price_clause(loss: Reading | None) -> str:
    """Say what a defence costs as the end of a sentence, without the interval.

    Example:
        >>> price_clause(Reading(name="accuracy_loss", value=0.031, low=0.01, high=0.052))
        'for about 3.1 points of accuracy'
        >>> price_clause(Reading(name="accuracy_loss", value=0.01, low=-0.01, high=0.03))
        'for about 1.0 points of accuracy, perhaps for nothing'
        >>> price_clause(Reading(name="accuracy_loss", value=-0.002, low=-0.01, high=0.03)), price_clause(None)
        ('at no cost seen in accuracy', 'at a price that was not measured')
    """
    if loss is None:
        return "at a price that was not measured"
    if is_free(loss):
        return f"at no cost seen in {utility_name(loss)}"
    unsure = ", perhaps for nothing" if loss.low is not None and loss.low <= 0 else ""
    return f"for about {points(loss.value)} points of {utility_name(loss)}{unsure}"


def _others(judgement: Judgement) -> list[str]:
    """Name what every other attack was left with, where nobody knows which of them is right."""
    rows = [one.row for one in judgement.tried if one.row is not judgement.worst]
    return [f"{capital(judgement.kind.clause(row))}." for row in rows] if judgement.kind.unjudged else []


def _signs(judgement: Judgement) -> list[str]:
    """Say what else lies beyond chance, with a `but` where it is all that does; `leaks` needs one reason only."""
    is_read = judgement.kind.is_read(judgement.worst)
    if not judgement.signs or (judgement.verdict == "leaks" and is_read):
        return []
    also = "Also, " if is_read else "But "
    return [f"{also}{join_words(judgement.signs)}."]


def _luck(judgement: Judgement) -> list[str]:
    return [] if judgement.luckiest is None else [judgement.kind.luck(judgement.luckiest)]


def _basis(judgement: Judgement) -> list[str]:
    """Say what the word rests on: the bound, the attacks that found nothing, or what is missing."""
    if judgement.verdict == "bounded" and judgement.bound is not None:
        return [str(judgement.bound)]
    if judgement.verdict == "unknown":
        return [judgement.missing]
    if judgement.verdict != "not broken":
        return []
    by_name = {one.name: one.principle for one in judgement.tried if one.counts}
    names = join_words([f"{name} ({principle})" for name, principle in by_name.items()])
    reach = judgement.kind.reach(judgement.worst)
    more = f"A stronger attack may get through; {reach}" if reach else "A stronger attack may get through"
    return [f"Attacks that know the defence and work without it found nothing: {names}. {more}."]


def _say_gain(judgement: Judgement) -> list[str]:
    """Say so where an attack that models the defence gets more than the strongest that ignores it."""
    kind, rows = judgement.kind, [one.row for one in judgement.tried]
    knowing = strongest(kind, [row for row in rows if row.adaptive])
    ignoring = strongest(kind, [row for row in rows if not row.adaptive])
    if is_undefended(judgement.defence) or knowing is None or ignoring is None:
        return []
    more = kind.gain(knowing, ignoring)
    if more is None:
        return []
    said, than, sure = more
    unsure = "" if sure else "; the intervals overlap"
    return [
        f"An attacker who knows the defence gets {said} ({knowing.attack}), one who ignores it {than} "
        f"({ignoring.attack}){unsure}."
    ]


def _say_ignorant(judgement: Judgement) -> str:
    """Say that the model is no use; in which way, unless the price says so too."""
    utility = judgement.worst.utility
    said = "The model learned nothing" if is_ignorant(utility) else "The model may have learned nothing"
    if judgement.worst.unpriced and not is_undefended(judgement.defence):
        return f"{said}."
    return f"{said}: it {no_better(utility)}."


def _price(row: Row) -> str:
    if row.unpriced and row.useless:
        return "No price can be given: that is so even without a defence."
    text = f"no price can be given: {row.unpriced}" if row.unpriced else cost_of(row.loss)
    return f"{capital(text)}." if row.loss is None else f"The price: {text}."


def _budget(row: Row) -> Sequence[str]:
    said = "; ".join(map(str, row.budgets))
    return [f"Its privacy budget: {said}."] if said else []
