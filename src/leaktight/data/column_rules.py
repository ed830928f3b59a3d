"""Column rules: how the columns of a table become numbers, whoever holds it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from leaktight.core.value import Value
from leaktight.data.column import ColumnEncoding, Encoding, fit_column
from leaktight.data.columns import Columns


class ColumnRules(Value):
    """What is done to the cells of a table's columns; each column is learned from training cells alone.

    Args:
        categorical: columns of numbers to treat as words.
        missing: what to do about empty cells, `?`, `NA` and `NaN`: `error`, or `fill` with the mean, or for words with
            none of them.
        most_words: refuse a column of words with more different ones than this, if they become one-hot.
        words: `one_hot`, a column for each word; `ids`, its number among the training words; `hashed`, a number that
            follows from it alone.
        buckets: how many ids hashed words share, at least 1; fewer mix more words up.
        logarithm: columns of numbers in which sign(v) log(1 + |v|) takes a value's place, as is usual for counts; `*`
            stands for any text.
        standardise: whether numbers are brought to mean 0 and deviation 1 by the training rows.

    Example:
        >>> cells = np.array([["30", "cook"], ["40", "clerk"]], dtype=object)
        >>> columns = ColumnRules(words="ids").learn(["age", "job"], cells)
        >>> encode(columns, cells).tolist(), describe(columns).ids
        ([[-1.0, 2.0], [1.0, 1.0]], (0, 3))
    """

    categorical: tuple[str, ...] = ()
    missing: Literal["error", "fill"] = "error"
    most_words: Annotated[int, Field(ge=2)] = 200
    words: Encoding = "one_hot"
    # An id travels as a single-precision number, which is exact up to here.
    buckets: Annotated[int, Field(ge=1, lt=2**24)] = 1000
    logarithm: tuple[str, ...] = ()
    standardise: bool = True

    def learn(self, header: Sequence[str], cells: NDArray[Any]) -> list[ColumnEncoding]:
        """Learn the columns of these names from training cells, one column each."""
        counts = {header[at] for at in Columns(tuple(header), (0,) * len(header)).find(self.logarithm, "`logarithm`")}
        return [
            fit_column(
                name,
                cells[:, at],
                name in self.categorical,
                self.missing == "fill",
                self.most_words,
                words=self.words,
                buckets=self.buckets,
                logarithm=name in counts,
                standardise=self.standardise,
            )
            for at, name in enumerate(header)
        ]


def describe(columns: Sequence[ColumnEncoding]) -> Columns:
    """Return what others may know of learned columns: the name of each position and how many ids it has."""
    return Columns(
        tuple(column.name for column in columns for _ in column.ids),
        tuple(ids for column in columns for ids in column.ids),
    )


def encode(columns: Sequence[ColumnEncoding], cells: NDArray[Any]) -> Tensor:
    """Return cells as numbers, one row each; without columns, rows of no numbers."""
    parts = [column.encode(cells[:, at]) for at, column in enumerate(columns)]
    none = np.zeros((len(cells), 0), dtype=np.float32)
    return torch.from_numpy(np.concatenate([none, *parts], axis=1))
