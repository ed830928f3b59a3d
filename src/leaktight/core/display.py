"""Display: lists, counts and shares as a sentence shows them."""

from __future__ import annotations

from collections.abc import Sequence

from leaktight.core.metric import Reading


def join_words(words: Sequence[str]) -> str:
    """Join words as a sentence does.

    Example:
        >>> join_words(["a", "b", "c"]), join_words(["a"])
        ('a, b and c', 'a')
    """
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def capital(text: str) -> str:
    """Return a text as the start of a sentence.

    Example:
        >>> capital("top-k (share 0.1)"), capital("DP-SGD")
        ('Top-k (share 0.1)', 'DP-SGD')
    """
    return text[:1].upper() + text[1:]


def percent(value: float) -> str:
    """Show a share as a percentage.

    Example:
        >>> percent(0.4375), percent(0.02)
        ('44 %', '2 %')
    """
    return f"{100 * value:.0f} %"


def points(value: float) -> str:
    """Show a difference of shares in percentage points.

    Example:
        >>> points(0.031), points(-0.0004)
        ('3.1', '0.0')
    """
    return f"{100 * value + 0.0:.1f}".replace("-0.0", "0.0")


def duration(seconds: float) -> str:
    """Say a time as a person would.

    Example:
        >>> duration(0.41), duration(42), duration(600), duration(9000)
        ('0.4 s', '42 s', '10 min', '2.5 h')
    """
    if seconds < 120:
        return f"{seconds:.{int(seconds < 10)}f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f}".removesuffix(".0") + " h"


def count(number: int, noun: str) -> str:
    """Return a number of things, with the noun in its right form.

    Example:
        >>> count(1, "cell"), count(3, "cell"), count(0, "training run")
        ('1 cell', '3 cells', '0 training runs')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def show_count(reading: Reading) -> str:
    """Show a share as a count.

    Example:
        >>> show_count(Reading(name="hits", value=0.875, n=8)), show_count(Reading(name="hits", value=0, n=8))
        ('7 of 8', 'none of 8')
    """
    number = round(reading.value * reading.n)
    return f"all {number}" if number == reading.n > 1 else f"{number or 'none'} of {reading.n}"
