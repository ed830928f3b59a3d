"""The columns of a table in split learning: which of them each party holds."""

from __future__ import annotations

import dataclasses
from typing import Self

from leaktight.core.errors import InvalidValue
from leaktight.data.columns import Columns
from leaktight.data.source import Data
from leaktight.models.halves import Statistics


@dataclasses.dataclass(frozen=True)
class ColumnSplit:
    """The positions of the columns that each party holds; one may be with both.

    Args:
        ours: the feature party's; None for images, which stay whole.
        theirs: the label party's.
    """

    ours: tuple[int, ...] | None
    theirs: tuple[int, ...] = ()

    @classmethod
    def of(cls, data: Data, feature_party: tuple[str, ...], label_party: tuple[str, ...]) -> Self:
        """Find columns by their names; a feature party without names holds all that the label party does not."""
        if len(data.shape) != 1:
            if label_party or feature_party:
                raise InvalidValue(
                    f"The columns of split must be left out for images. Got data of shape {data.shape} instead."
                )
            return cls(None)
        columns = columns_of(data)
        theirs = columns.find(label_party, "the label party")
        ours = columns.find(feature_party, "the feature party")
        if not feature_party:
            ours = tuple(at for at in range(len(columns)) if at not in set(theirs))
        if not ours:
            raise InvalidValue(
                "The `label_party` of split must leave the feature party a column. Got all columns instead."
            )
        return cls(ours, theirs)

    def of_features(self, statistics: Statistics | None) -> Statistics | None:
        """Return the part of the statistics that the feature party's columns have."""
        return statistics if self.ours is None else _take(statistics, self.ours)

    def of_labels(self, statistics: Statistics | None) -> Statistics | None:
        """Return the part of the statistics that the label party's columns have."""
        return _take(statistics, self.theirs)


def columns_of(data: Data) -> Columns:
    """Return the columns of a table, plain numbers if nothing is known of them."""
    return data.columns or Columns.plain(data.shape[0])


def _take(statistics: Statistics | None, positions: tuple[int, ...]) -> Statistics | None:
    if statistics is None:
        return None
    mean, std = statistics
    return tuple(mean[at] for at in positions), tuple(std[at] for at in positions)
