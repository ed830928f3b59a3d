"""Columns: how one column of a table becomes numbers, learned from the training rows alone."""

from __future__ import annotations

import abc
import dataclasses
import zlib
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from leaktight.core.errors import InvalidValue

Cells = Sequence[str] | NDArray[Any]
Encoding = Literal["one_hot", "ids", "hashed"]
"""What a word becomes: a column of its own, its number among the training words, or one that follows from it alone."""
_MISSING = {"", "?", "na", "n/a", "nan", "null"}


def is_missing(cell: str) -> bool:
    """Whether a cell holds nothing.

    Example:
        >>> is_missing("?"), is_missing("0")
        (True, False)
    """
    return cell.lower() in _MISSING


@dataclasses.dataclass(frozen=True)
class ColumnEncoding(abc.ABC):
    """A named column that encodes cells as numbers.

    Args:
        name: the column's name.
        fill: whether a missing cell is filled; otherwise it is an error.
    """

    name: str
    fill: bool

    @property
    @abc.abstractmethod
    def ids(self) -> tuple[int, ...]:
        """For each position that a cell is encoded to, how many ids there are; 0 for a number."""

    @abc.abstractmethod
    def encode(self, cells: Cells) -> NDArray[np.float32]:
        """Return one row of numbers for each cell."""

    def check(self, cells: Cells) -> None:
        """Raise if a cell is missing and may not be."""
        if not self.fill and any(is_missing(cell) for cell in cells):
            count = sum(is_missing(cell) for cell in cells)
            raise InvalidValue(
                f"The column `{self.name}` must have a value in each row. Got {count} missing; set `missing` to "
                "`fill`, or `ignore` the column."
            )


@dataclasses.dataclass(frozen=True)
class Numbers(ColumnEncoding):
    """A column of numbers: (value - mean) / deviation, 0 for a missing one.

    `logarithm` takes sign(value) log(1 + |value|) first.

    Example:
        >>> Numbers("age", fill=True, mean=40.0, deviation=10.0).encode(["30", "?"]).tolist()
        [[-1.0], [0.0]]
    """

    mean: float
    deviation: float
    logarithm: bool = False

    @property
    def ids(self) -> tuple[int, ...]:
        """One number."""
        return (0,)

    def encode(self, cells: Cells) -> NDArray[np.float32]:
        """Return the standardised numbers as one column."""
        self.check(cells)
        values = (scale(self.name, cells, self.logarithm) - self.mean) / self.deviation
        values[np.isnan(values)] = 0
        return values.astype(np.float32)[:, np.newaxis]


@dataclasses.dataclass(frozen=True)
class Words(ColumnEncoding):
    """A column of words: a column for each known word, 1 where the cell is that word.

    An unknown or missing word is all zeros.

    Example:
        >>> Words("job", fill=True, words=("clerk", "cook")).encode(["cook", "pilot"]).tolist()
        [[0.0, 1.0], [0.0, 0.0]]
    """

    words: tuple[str, ...]

    @property
    def ids(self) -> tuple[int, ...]:
        """A number for each word."""
        return (0,) * len(self.words)

    def encode(self, cells: Cells) -> NDArray[np.float32]:
        """Return a column for each word."""
        self.check(cells)
        places = {word: at for at, word in enumerate(self.words)}
        encoded = np.zeros((len(cells), len(self.words)), dtype=np.float32)
        for row, cell in enumerate(cells):
            if cell in places:
                encoded[row, places[cell]] = 1
        return encoded


@dataclasses.dataclass(frozen=True)
class Ids(ColumnEncoding):
    """A column of words as ids: each known word's number from 1; 0 for an unknown or missing one.

    Example:
        >>> Ids("job", fill=True, words=("clerk", "cook")).encode(["cook", "pilot"]).tolist()
        [[2.0], [0.0]]
    """

    words: tuple[str, ...]

    @property
    def ids(self) -> tuple[int, ...]:
        """One id, the unknown among them."""
        return (len(self.words) + 1,)

    def encode(self, cells: Cells) -> NDArray[np.float32]:
        """Return the ids as one column."""
        self.check(cells)
        places = {word: at for at, word in enumerate(self.words, start=1)}
        return np.array([places.get(cell, 0) for cell in cells], dtype=np.float32)[:, np.newaxis]


@dataclasses.dataclass(frozen=True)
class Hashed(ColumnEncoding):
    """A column of words as ids that nothing has to be learned for.

    An id is 1 + CRC-32 of the word modulo `buckets`; that of a missing word is 0.

    Example:
        >>> Hashed("job", fill=True, buckets=10).encode(["cook", "pilot", "cook", "?"]).tolist()
        [[5.0], [9.0], [5.0], [0.0]]
    """

    buckets: int

    @property
    def ids(self) -> tuple[int, ...]:
        """One id, the missing among them."""
        return (self.buckets + 1,)

    def encode(self, cells: Cells) -> NDArray[np.float32]:
        """Return the ids as one column."""
        self.check(cells)
        ids = [0 if is_missing(cell) else 1 + zlib.crc32(cell.encode()) % self.buckets for cell in cells]
        return np.array(ids, dtype=np.float32)[:, np.newaxis]


def fit_column(
    name: str,
    cells: Cells,
    categorical: bool,
    fill: bool,
    most_words: int,
    *,
    words: Encoding = "one_hot",
    buckets: int = 1000,
    logarithm: bool = False,
    standardise: bool = True,
) -> ColumnEncoding:
    """Learn a column from its training cells: numbers if every present cell is one, words otherwise.

    Args:
        name: the column's name.
        cells: the training cells.
        categorical: take numbers as words.
        fill: whether missing cells are allowed.
        most_words: how many different words are allowed, if they become one-hot.
        words: what becomes of words.
        buckets: how many ids hashed words share.
        logarithm: whether numbers are replaced by sign(value) log(1 + |value|) first.
        standardise: whether numbers are brought to mean 0 and deviation 1 over the training cells.
    """
    # Nothing has to be learned for these two, so not even an empty column matters.
    if categorical and words == "hashed":
        return Hashed(name, fill, buckets)
    if logarithm and not standardise:
        return Numbers(name, fill, 0.0, 1.0, logarithm=True)
    present = [cell for cell in cells if not is_missing(cell)]
    if not present:
        raise InvalidValue(
            f"The column `{name}` must have a value in some training row. Got none; `ignore` the column."
        )
    if not categorical and all(map(is_number, present)):
        if not standardise:
            return Numbers(name, fill, 0.0, 1.0, logarithm)
        values = scale(name, present, logarithm)
        deviation = float(values.std())
        constant = deviation <= 1e-12 * max(1.0, float(np.abs(values).max()))
        # The mean of equal numbers may be rounded to a neighbour of theirs.
        mean = float(values[0] if constant else values.mean())
        return Numbers(name, fill, mean, 1.0 if constant else deviation, logarithm)
    if words == "hashed":
        return Hashed(name, fill, buckets)
    known = tuple(sorted(set(present)))
    if words == "ids":
        return Ids(name, fill, known)
    if len(known) > most_words:
        raise InvalidValue(
            f"The column `{name}` must have at most {most_words} different words. Got {len(known)} instead; `ignore` "
            "the column or raise `most_words`."
        )
    return Words(name, fill, known)


def scale(name: str, cells: Cells, logarithm: bool) -> NDArray[np.float64]:
    """Return cells as numbers, on a logarithmic scale if asked for, NaN where one is missing.

    Example:
        >>> scale("clicks", ["0", "-1", "?"], logarithm=True).round(3).tolist()
        [0.0, -0.693, nan]
    """
    values = numbers(name, cells)
    return np.sign(values) * np.log1p(np.abs(values)) if logarithm else values


def numbers(name: str, cells: Cells) -> NDArray[np.float64]:
    """Return cells as numbers, NaN where one is missing."""
    odd = next((cell for cell in cells if not is_missing(cell) and not is_number(cell)), None)
    if odd is not None:
        raise InvalidValue(f"The column `{name}` must hold numbers, as in the training rows. Got {odd!r} instead.")
    values = np.array([np.nan if is_missing(cell) else float(cell) for cell in cells])
    if np.isinf(values).any():
        raise InvalidValue(f"The column `{name}` must hold finite numbers. Got an infinite one instead.")
    return values


def is_number(cell: str) -> bool:
    """Whether a cell holds a number.

    Example:
        >>> is_number("-1e3"), is_number("cook")
        (True, False)
    """
    try:
        float(cell)
    except ValueError:
        return False
    return True
