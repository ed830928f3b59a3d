"""Columns: how one column of a table becomes numbers, learned from the training rows alone."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leaktight.core.errors import InvalidValue

Cells = Sequence[str] | NDArray[Any]
_MISSING = {"", "?", "na", "n/a", "nan", "null"}


def is_missing(cell: str) -> bool:
    """Whether a cell holds nothing.

    Example:
        >>> is_missing("?"), is_missing("0")
        (True, False)
    """
    return cell.lower() in _MISSING


@dataclasses.dataclass(frozen=True)
class Column(abc.ABC):
    """A named column that encodes cells as numbers.

    Args:
        name: the column's name.
        fill: whether a missing cell is filled; otherwise it is an error.
    """

    name: str
    fill: bool

    @abc.abstractmethod
    def encode(self, cells: Cells) -> NDArray[np.float32]:
        """Return one row of numbers for each cell."""

    def check(self, cells: Cells) -> None:
        """Raise if a cell is missing and may not be."""
        if not self.fill and any(is_missing(cell) for cell in cells):
            count = sum(is_missing(cell) for cell in cells)
            raise InvalidValue(
                f"The column `{self.name}` must have a value in each row. Got {count} missing; set `missing` to `fill`, or `ignore` the column."
            )


@dataclasses.dataclass(frozen=True)
class Numbers(Column):
    """A column of numbers: (value - mean) / deviation, 0 for a missing one.

    Example:
        >>> Numbers("age", fill=True, mean=40.0, deviation=10.0).encode(["30", "?"]).tolist()
        [[-1.0], [0.0]]
    """

    mean: float
    deviation: float

    def encode(self, cells: Cells) -> NDArray[np.float32]:
        """Return the standardised numbers as one column."""
        self.check(cells)
        values = (numbers(self.name, cells) - self.mean) / self.deviation
        values[np.isnan(values)] = 0
        return values.astype(np.float32)[:, np.newaxis]


@dataclasses.dataclass(frozen=True)
class Words(Column):
    """A column of words: a column for each known word, 1 where the cell is that word; an unknown or missing word is all zeros.

    Example:
        >>> Words("job", fill=True, words=("clerk", "cook")).encode(["cook", "pilot"]).tolist()
        [[0.0, 1.0], [0.0, 0.0]]
    """

    words: tuple[str, ...]

    def encode(self, cells: Cells) -> NDArray[np.float32]:
        """Return a column for each word."""
        self.check(cells)
        places = {word: at for at, word in enumerate(self.words)}
        encoded = np.zeros((len(cells), len(self.words)), dtype=np.float32)
        for row, cell in enumerate(cells):
            if cell in places:
                encoded[row, places[cell]] = 1
        return encoded


def fitted(name: str, cells: Cells, categorical: bool, fill: bool, most_words: int) -> Column:
    """Learn a column from its training cells: numbers if every present cell is one, words otherwise.

    Args:
        name: the column's name.
        cells: the training cells.
        categorical: take numbers as words.
        fill: whether missing cells are allowed.
        most_words: how many different words are allowed.
    """
    present = [cell for cell in cells if not is_missing(cell)]
    if not present:
        raise InvalidValue(f"The column `{name}` must have a value in some training row. Got none; `ignore` the column.")
    if not categorical and all(map(_is_number, present)):
        values = numbers(name, present)
        deviation = float(values.std())
        constant = deviation <= 1e-12 * max(1.0, float(np.abs(values).max()))
        return Numbers(name, fill, float(values.mean()), 1.0 if constant else deviation)
    words = tuple(sorted(set(present)))
    if len(words) > most_words:
        raise InvalidValue(
            f"The column `{name}` must have at most {most_words} different words. Got {len(words)} instead; `ignore` the column or raise `most_words`."
        )
    return Words(name, fill, words)


def numbers(name: str, cells: Cells) -> NDArray[np.float64]:
    """Return cells as numbers, NaN where one is missing."""
    odd = next((cell for cell in cells if not is_missing(cell) and not _is_number(cell)), None)
    if odd is not None:
        raise InvalidValue(f"The column `{name}` must hold numbers, as in the training rows. Got {odd!r} instead.")
    values = np.array([np.nan if is_missing(cell) else float(cell) for cell in cells])
    if np.isinf(values).any():
        raise InvalidValue(f"The column `{name}` must hold finite numbers. Got an infinite one instead.")
    return values


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
