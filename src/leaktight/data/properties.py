"""Properties: which examples have what nobody meant to share, 1 or 0 for each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leaktight.core.errors import InvalidValue, did_you_mean
from leaktight.data.column import Cells, is_number
from leaktight.data.labels import as_ids

Flags = NDArray[np.int64]
Cell = float | str
_TRUTHS = ({"false", "true"}, {"no", "yes"})
_TRUE = ("true", "yes")
_SHOWN = 30


def as_flags(values: NDArray[Any], what: str) -> Flags:
    """Return truth values, numbers or text as one row of 0 and 1, or say which one is neither.

    Args:
        values: one for each example, as a row or a column.
        what: whose they are, for the error.

    Example:
        >>> as_flags(np.array(["0", "1"]), "It").tolist()
        [0, 1]
    """
    flags = as_ids(values, what)
    wrong = np.flatnonzero(~np.isin(flags.astype(str), ("0", "1")))
    if len(wrong):
        raise InvalidValue(
            f"{what} must be 0 or 1 for each example. Got `{flags[wrong[0]]}` at example {wrong[0]} instead."
        )
    return flags


def mark_positive(train: Cells, test: Cells, positive: str, what: str) -> tuple[Flags, Flags, str]:
    """Return for the cells of two parts whether each is the positive one, and which one that is.

    Cells are compared as numbers where they are numbers, so `1` is `1.0`.

    Args:
        train: the training cells, none of them missing.
        test: the test cells.
        positive: the cell that means 1, every other one means 0. Empty decides between two: of two numbers the larger
            one, of `false` and `true` or `no` and `yes` the latter, of two other words the rarer one in all rows, the
            last in order if they are as many.
        what: whose cells they are, for the error.

    Example:
        >>> train, test, positive = mark_positive(["m", "f", "m"], ["m"], "", "It")
        >>> train.tolist(), test.tolist(), positive
        ([0, 1, 0], [0], 'f')
    """
    counts = Counter(_value(cell) for cell in (*train, *test))
    chosen = _value(positive) if positive else _positive(counts, what)
    if chosen not in counts:
        known = sorted(map(_text, counts))
        hint = did_you_mean(positive, known) if len(known) <= _SHOWN else f"There are {len(known)} others."
        raise InvalidValue(f"{what} must have rows with `{positive}`, which is to mean 1. Got none. {hint}")
    flags = [np.array([_value(cell) == chosen for cell in cells], dtype=np.int64) for cells in (train, test)]
    return flags[0], flags[1], _text(chosen)


def _positive(counts: Mapping[Cell, int], what: str) -> Cell:
    if len(counts) != 2:
        shown = ", ".join(f"`{_text(cell)}`" for cell in list(counts)[:5])
        raise InvalidValue(
            f"{what} must have two different values. Got {len(counts)}: {shown}{', ...' * (len(counts) > 5)}; say by "
            "`private_property_positive` which one means 1."
        )
    if all(isinstance(cell, float) for cell in counts):
        return max(counts)
    if {str(cell).lower() for cell in counts} in _TRUTHS:
        return next(cell for cell in counts if str(cell).lower() in _TRUE)
    return min(sorted(counts, key=str, reverse=True), key=lambda cell: counts[cell])


def _value(cell: str) -> Cell:
    return float(cell) if is_number(cell) else cell


def _text(cell: Cell) -> str:
    return f"{cell:g}" if isinstance(cell, float) else cell
