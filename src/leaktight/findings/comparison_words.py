"""A comparison of audits in words: what each says, what its strongest attack got, and how much that differs."""

from __future__ import annotations

from collections.abc import Callable

from leaktight.core.defence import is_undefended
from leaktight.core.display import points
from leaktight.core.metric import Reading, quantity_of
from leaktight.findings.audit_comparison import AuditComparison, ComparedDefence, Difference
from leaktight.findings.sentence import is_free
from leaktight.findings.utility import utility_name
from leaktight.findings.verdict import Judgement


def say_words(comparison: AuditComparison, line: ComparedDefence) -> str:
    """Say the verdict of each audit on a line; where all say the same, once."""
    if not line.changed:
        return str(next(word for word in line.words if word is not None))
    return ", ".join(
        f"{audit.letter} {word}" for audit, word in zip(comparison.audits, line.words, strict=True) if word is not None
    )


def say_got(line: ComparedDefence, judgement: Judgement) -> str:
    """Say what the strongest attack of one audit got, and which it was."""
    return f"{line.kind.short(judgement.worst)} by {judgement.worst.attack}"


def say_price(judgement: Judgement) -> str:
    """Say what the defence costs in one audit; nothing where that is not known, or said beside another kind of leak."""
    loss = judgement.worst.loss
    if loss is None or judgement.beside or is_undefended(judgement.defence):
        return ""
    name = utility_name(loss)
    if loss.high is not None and loss.high < 0:
        return f"{points(-loss.value)} points of {name} gained"
    return "none seen" if is_free(loss) else f"{points(loss.value)} points of {name}"


def say_read(difference: Difference) -> str:
    """Say how much more or less is read than in the first audit; nothing where that cannot be compared."""
    reading = difference.read
    if reading is None:
        return ""
    quantity = quantity_of(reading.name)
    unit = "points" if quantity.unit == "%" else quantity.unit

    def number(value: float) -> str:
        return points(abs(value)) if quantity.unit == "%" else quantity.number(abs(value))

    basis = f"on the same {difference.victims} victims" if difference.victims else "as two independent samples"
    return f"reads {_show_difference(reading, number, unit, 'more', 'less')}, {basis}"


def say_use(difference: Difference) -> str:
    """Say how much better or worse the model is than in the first audit; nothing where that is not known."""
    loss = difference.use
    if loss is None:
        return ""
    gain = Reading(
        name=loss.name,
        value=-loss.value,
        low=None if loss.high is None else -loss.high,
        high=None if loss.low is None else -loss.low,
    )
    basis = "on the same test rows" if loss.paired else "as two independent samples"
    said = _show_difference(gain, lambda value: points(abs(value)), "points", "higher", "lower")
    return f"{utility_name(loss)} is {said}, {basis}"


def _show_difference(reading: Reading, number: Callable[[float], str], unit: str, more: str, less: str) -> str:
    """Say a difference with its interval in words, each end with its direction where they differ.

    Example:
        >>> gain = Reading(name="psnr", value=-2.0, low=-3.0, high=-1.0)
        >>> _show_difference(gain, lambda value: f"{abs(value):g}", "dB", "more", "less")
        '2 dB less (95 % interval 1 to 3)'
        >>> wide = gain.model_copy(update={"high": 0.5})
        >>> _show_difference(wide, lambda value: f"{abs(value):g}", "dB", "more", "less")
        '2 dB less (95 % interval 3 less to 0.5 more, so perhaps no difference)'
    """

    def side(value: float, unit: str = "") -> str:
        return " ".join(filter(None, (number(value), unit, more if value > 0 else less)))

    said = "the same" if number(reading.value) == number(0.0) else side(reading.value, unit)
    low, high = reading.low, reading.high
    if low is None or high is None or low == high:
        return said
    if low <= 0 <= high:
        return f"{said} (95 % interval {side(low)} to {side(high)}, so perhaps no difference)"
    ends = sorted((abs(low), abs(high)))
    return f"{said} (95 % interval {number(ends[0])} to {number(ends[1])})"
