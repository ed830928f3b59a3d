"""Party data: what one party holds of each person, and nothing of what the other one holds."""

from __future__ import annotations

import dataclasses

import torch

from leaktight.core.task import Batch
from leaktight.data.columns import Columns
from leaktight.data.source import Data
from leaktight.learning.split import Split
from leaktight.models.halves import Statistics


@dataclasses.dataclass(frozen=True)
class PartyData:
    """What one party holds.

    Args:
        train: its training rows and its labels, in the agreed order of people; labels of -1 if it has none, rows
            without columns if it has labels alone.
        test: the same for test rows; None if there are none.
        columns: what each position of its rows holds; None for images.
        classes: how many classes there are, known to the label party; 0 for the feature party.
        people: a digest of the sorted ids of all rows; empty if rows are aligned by their order.
    """

    train: Batch
    test: Batch | None
    columns: Columns | None
    classes: int
    people: str = ""

    @classmethod
    def of_split(cls, split: Split, labelled: bool) -> PartyData:
        """Return one party's part of a whole data set, as the columns of a split scenario deal it out.

        Args:
            split: the scenario.
            labelled: whether the label party's part is wanted.
        """
        data = split.data.load()
        ours, theirs = split.deal_columns(data)
        columns = data.columns or (None if ours is None else Columns.plain(data.shape[0]))
        parts = []
        for batch in (data.train, data.test):
            features, own = split.divide_rows(batch.inputs)
            if labelled:
                parts.append(Batch(batch.inputs.new_zeros((len(batch), 0)) if own is None else own, batch.labels))
            else:
                parts.append(Batch(features, torch.full((len(batch),), -1)))
        places = theirs if labelled else ours
        own_columns = None if columns is None or places is None else columns.take(places)
        return cls(parts[0], parts[1], own_columns, data.classes if labelled else 0)

    def statistics(self) -> Statistics | None:
        """Return mean and standard deviation of each column over the test rows, which are public; None without them."""
        if self.test is None:
            return None
        return Data(self.train, self.test, self.classes, columns=self.columns).statistics()
