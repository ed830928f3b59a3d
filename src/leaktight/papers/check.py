"""Checks: something that a paper says, and whether it holds on our numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from leaktight.core.metric import Reading
from leaktight.core.value import Value

NOT_MEASURED = "not measured"
"""The word for a check without a number: a gap in a table says nothing against a claim."""


class Check(Value):
    """Something the paper says, and whether it holds here.

    Args:
        name: what is claimed, in words.
        value: what was measured; None if it could not be.
        expected: which values hold, in words.
        holds: whether it does. Of what could not be measured nobody knows, and it is not said to hold.
        low: the lower end of the value's 95 % interval; None if it has none.
        high: the upper end.
        undecided: whether the interval has values that hold and values that do not.
        why: one sentence that says why it does not hold; empty if it holds, or if no reason was found yet.
        unless: one sentence that says what would change our mind.
    """

    name: str
    value: float | None
    expected: str
    holds: bool
    low: float | None = None
    high: float | None = None
    undecided: bool = False
    why: str = ""
    unless: str = ""

    @property
    def word(self) -> str:
        """Whether it holds, does not hold, its interval leaves that open, or there is no number."""
        if self.value is None:
            return NOT_MEASURED
        return "undecided" if self.undecided else "holds" if self.holds else "does not hold"


def tally(checks: Sequence[Check]) -> str:
    """Say how many claims hold.

    Example:
        >>> tally([above("one", 1.0, 0.0), above("two", -1.0, 0.0), above("three", None, 0.0)])
        '1 holds, 1 does not, 1 not measured, of 3.'
    """
    if not checks:
        return "Nothing is checked."
    words = [check.word for check in checks]
    holding, failing, open_, missing = (
        words.count(word) for word in ("holds", "does not hold", "undecided", NOT_MEASURED)
    )
    said = [
        f"{holding} {'holds' if holding == 1 else 'hold'}",
        f"{failing} {'does' if failing == 1 else 'do'} not",
        *([f"{open_} undecided"] if open_ else []),
        *([f"{missing} {NOT_MEASURED}"] if missing else []),
    ]
    return f"{', '.join(said)}, of {len(checks)}."


def check(name: str, measured: Reading | float | None, expected: str, test: Callable[[float], bool]) -> Check:
    """Return the check that a number passes a test; undecided if the value and the ends of its interval do not agree.

    Example:
        >>> small = Reading(name="error", value=0.05, low=-0.2, high=0.2)
        >>> check("small", small, "at most 0.1", lambda value: value <= 0.1).undecided
        True
    """
    if not isinstance(measured, Reading):
        return Check(name=name, value=measured, expected=expected, holds=measured is not None and test(measured))
    value, low, high = measured.value, measured.low, measured.high
    answers = {test(each) for each in (value, low, high) if each is not None}
    return Check(
        name=name, value=value, expected=expected, holds=test(value), low=low, high=high, undecided=len(answers) > 1
    )


def above(name: str, value: Reading | float | None, least: float) -> Check:
    """Return the check that a number is above another.

    Example:
        >>> above("two above one", 2 - 1, least=0).holds, above("nothing measured", None, least=0).holds
        (True, False)
    """
    return check(name, value, f"above {least:g}", lambda each: each > least)


def at_least(name: str, value: Reading | float | None, least: float) -> Check:
    """Return the check that a number is not below another.

    Example:
        >>> at_least("a point at most", -0.005, least=-0.01).expected
        'at least -0.01'
    """
    return check(name, value, f"at least {least:g}", lambda each: each >= least)


def at_most(name: str, value: Reading | float | None, most: float) -> Check:
    """Return the check that a number is not above another.

    Example:
        >>> at_most("small enough", 0.55, most=0.6).holds, at_most("nothing measured", None, most=0.6).holds
        (True, False)
    """
    return check(name, value, f"at most {most:g}", lambda each: each <= most)


def within(name: str, value: Reading | float | None, most: float) -> Check:
    """Return the check that a number is no further from 0 than another.

    Example:
        >>> within("almost the same", -0.05, most=0.1).expected
        'between -0.1 and 0.1'
    """
    return check(name, value, f"between {-most:g} and {most:g}", lambda each: abs(each) <= most)
