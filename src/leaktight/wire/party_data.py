"""Party data: what one party holds of each person, and nothing of what the other one holds."""

from __future__ import annotations

import dataclasses
import hashlib
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from leaktight.core.errors import InvalidValue, did_you_mean
from leaktight.core.task import Batch
from leaktight.data.column import is_missing
from leaktight.data.column_rules import ColumnRules, describe, encode
from leaktight.data.columns import Columns
from leaktight.data.files import Location
from leaktight.data.labels import as_ids, number
from leaktight.data.source import Data
from leaktight.data.table import as_words, read_cells
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
        positions = split.columns(data)
        columns = data.columns or (None if positions.ours is None else Columns.plain(data.shape[0]))
        parts = []
        for batch in (data.train, data.test):
            features, own = split.divide_rows(batch.inputs)
            if labelled:
                parts.append(Batch(batch.inputs.new_zeros((len(batch), 0)) if own is None else own, batch.labels))
            else:
                parts.append(Batch(features, torch.full((len(batch),), -1)))
        places = positions.theirs if labelled else positions.ours
        own_columns = None if columns is None or places is None else columns.take(places)
        return cls(parts[0], parts[1], own_columns, data.classes if labelled else 0)

    def statistics(self) -> Statistics | None:
        """Return mean and standard deviation of each column over the test rows, which are public; None without them."""
        if self.test is None:
            return None
        return Data(self.train, self.test, self.classes, columns=self.columns).statistics()


class PartyTable(ColumnRules):
    """A table in a text file with a header, plain or `.gz`: the rows of one party, aligned with the other's.

    With an `id` column on both sides, rows are brought into the order of their ids, and a digest of all ids is
    compared; without, both files must have the same people in the same order. How each column is encoded is learned
    from this party's own training cells, as `csv` does it.

    Args:
        path: the file with the training rows.
        test_path: a second file with test rows; empty leaves the final test, and standardising by test rows, out.
        id: the column that both parties know people by; it is no input. Empty means that the order of rows is agreed.
        label: the column with the label, of the label party alone.
        positive: of two labels the one that counts as positive; empty takes the last in order.
        ignore: columns to leave out.
        categorical: columns of numbers to treat as words.
        separator: what stands between cells; None finds it out: a comma, a semicolon, a tab or a bar.
        missing: what to do about empty cells, `?`, `NA` and `NaN`: `error`, or `fill` with the mean, or for words with
            none of them.
        most_words: refuse a column of words with more different ones than this, if they become one-hot.
        words: `one_hot`, `ids` or `hashed`.
        buckets: how many ids hashed words share.
        logarithm: columns of numbers in which sign(v) log(1 + |v|) takes a value's place; `*` stands for any text.
        standardise: whether numbers are brought to mean 0 and deviation 1 by the training rows.
    """

    kind: Literal["party_table"] = "party_table"
    path: Annotated[Location, Field(min_length=1)]
    test_path: Location = ""
    id: str = ""
    label: str = ""
    positive: str = ""
    ignore: tuple[str, ...] = ()
    separator: Annotated[str, Field(min_length=1, max_length=1)] | None = None

    def load(self, labelled: bool) -> PartyData:
        """Read what the party holds.

        Args:
            labelled: whether it is the label party, which must name a label; the other one must not.
        """
        if labelled != bool(self.label):
            rule = (
                "must name the column with the labels" if labelled else "must name no label: the feature party has none"
            )
            raise InvalidValue(f"The `label` of party_table {rule}. Got {self.label!r} instead.")
        header, train = self._cells(self.path)
        test = None
        if self.test_path:
            other, test = self._cells(self.test_path)
            if other != header:
                raise InvalidValue(
                    f"The file `{self.test_path}` must have the columns of `{self.path}`, in their order. It does not."
                )
        kept = [at for at, name in enumerate(header) if name not in {self.id, self.label, *self.ignore}]
        if not kept and not labelled:
            raise InvalidValue(
                f"The file `{self.path}` must have a column for the feature party to learn from. Got none instead."
            )
        columns = self.learn([header[at] for at in kept], train[:, kept])
        ours, theirs, classes = self._labels(header, train, train[:0] if test is None else test)
        return PartyData(
            Batch(encode(columns, train[:, kept]), ours),
            None if test is None else Batch(encode(columns, test[:, kept]), theirs),
            describe(columns),
            classes,
            self._people(header, train, test),
        )

    def _cells(self, path: str) -> tuple[list[str], NDArray[Any]]:
        """Return the header and the cells of a file, in the order of their ids if there are any."""
        file = Path(path).expanduser()
        header, rows = read_cells(file, (), self.separator)
        wanted = [name for name in (self.id, self.label) if name]
        for name in (*wanted, *self.ignore, *self.categorical):
            if name not in header:
                raise InvalidValue(f"The file `{file}` has no column `{name}`. {did_you_mean(name, header)}")
        cells: NDArray[Any] = np.array(rows, dtype=object)
        for name in wanted:
            empty = next((at for at, cell in enumerate(cells[:, header.index(name)]) if is_missing(cell)), None)
            if empty is not None:
                raise InvalidValue(
                    f"The column `{name}` of `{file}` must have a value in each row. Got none in row {empty + 1}."
                )
        if self.id:
            ids = as_words(cells[:, header.index(self.id)], f"The ids of `{file}`")
            order = np.argsort(ids, kind="stable")
            twice = np.flatnonzero(ids[order][1:] == ids[order][:-1])
            if len(twice):
                raise InvalidValue(f"The column `{self.id}` of `{file}` must name each row once. Got an id twice.")
            cells = cells[order]
        return header, cells

    def _people(self, header: list[str], *parts: NDArray[Any] | None) -> str:
        if not self.id:
            return ""
        digest = hashlib.sha256()
        for cells in parts:
            ids = [] if cells is None else cells[:, header.index(self.id)].tolist()
            digest.update("\x1f".join(map(str, ids)).encode() + b"\x1e")
        return digest.hexdigest()

    def _labels(self, header: list[str], train: NDArray[Any], test: NDArray[Any]) -> tuple[Tensor, Tensor, int]:
        """Return the labels of training and test rows, and the number of classes; -1 stands for a missing label."""
        if not self.label:
            return torch.full((len(train),), -1), torch.full((len(test),), -1), 0
        what, at = f"The labels of `{self.path}`", header.index(self.label)
        ids = as_ids(as_words(train[:, at], what), what)
        # Without test rows there is nothing that could be of another type.
        others = as_ids(as_words(test[:, at], what), what) if len(test) else ids[:0]
        ours, theirs, names = number(ids, others, what, self.positive)
        return torch.from_numpy(ours), torch.from_numpy(theirs), len(names)
