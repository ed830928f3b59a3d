"""The layers that take a table's rows: embeddings beside numbers, and the wide part."""

from __future__ import annotations

import itertools

import torch
from torch import Tensor, nn

from leaktight.data.columns import Columns


class _Ids(nn.Module):
    """Look up each category's id of a row in one table of vectors; the columns' ids follow one another in it."""

    def __init__(self, columns: Columns, width: int) -> None:
        super().__init__()
        counts = [columns.ids[at] for at in columns.categories]
        self.places: Tensor
        self.starts: Tensor
        self.register_buffer("places", torch.tensor(columns.categories, dtype=torch.long), persistent=False)
        starts = [0, *itertools.accumulate(counts)][: len(counts)]
        self.register_buffer("starts", torch.tensor(starts, dtype=torch.long), persistent=False)
        self.table = nn.Embedding(sum(counts), width)

    def forward(self, rows: Tensor) -> Tensor:
        """Return (n, categories, width)."""
        vectors: Tensor = self.table(rows[:, self.places].long() + self.starts)
        return vectors


class Encoded(nn.Module):
    """Rows as a deep network takes them: the numbers as they are, and for each category a vector that is learned.

    Args:
        columns: what the positions of a row hold.
        embedding: how long each vector is.

    Example:
        >>> layer = Encoded(Columns(("age", "job"), (0, 5)), embedding=4)
        >>> layer(torch.tensor([[0.5, 3.0]])).shape, layer.width
        (torch.Size([1, 5]), 5)
    """

    def __init__(self, columns: Columns, embedding: int) -> None:
        super().__init__()
        self.numbers: Tensor
        self.register_buffer("numbers", torch.tensor(columns.numbers, dtype=torch.long), persistent=False)
        self.width = len(columns.numbers) + embedding * len(columns.categories)
        self.ids = _Ids(columns, embedding) if columns.categories else None
        if self.ids is not None:
            # As wide as the numbers, which are standardised, would drown these in noise before they mean something.
            nn.init.normal_(self.ids.table.weight, std=0.1)

    def forward(self, rows: Tensor) -> Tensor:
        """Return the numbers, and after them the vectors of all categories."""
        numbers = rows[:, self.numbers]
        return numbers if self.ids is None else torch.cat([numbers, self.ids(rows).flatten(1)], 1)


class Wide(nn.Module):
    """The wide part: a linear model of the rows, with a weight for each number and for each id of each category.

    It starts from zero: at first it says nothing.

    Args:
        columns: what the positions of a row hold.
        classes: how many outputs there are.

    Example:
        >>> Wide(Columns(("age", "job"), (0, 5)), classes=2)(torch.tensor([[0.5, 3.0]])).tolist()
        [[0.0, 0.0]]
    """

    def __init__(self, columns: Columns, classes: int) -> None:
        super().__init__()
        self.numbers: Tensor
        self.register_buffer("numbers", torch.tensor(columns.numbers, dtype=torch.long), persistent=False)
        self.linear = nn.Linear(len(columns.numbers), classes, bias=False) if columns.numbers else None
        self.ids = _Ids(columns, classes) if columns.categories else None
        for parameter in self.parameters():
            nn.init.zeros_(parameter)

    def forward(self, rows: Tensor) -> Tensor:
        """Return the sum of the weights that a row calls for."""
        vectors: Tensor = rows.new_zeros(()) if self.linear is None else self.linear(rows[:, self.numbers])
        return vectors if self.ids is None else vectors + self.ids(rows).sum(1)
