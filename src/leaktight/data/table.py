"""Tables: comma-separated values, numbers standardised, words one-hot or as ids."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from leaktight.core.errors import InvalidValue, did_you_mean
from leaktight.data.column import is_missing
from leaktight.data.column_rules import ColumnRules, described, encoded
from leaktight.data.files import FileSource, Location, Part, Share, read_bytes
from leaktight.data.labels import as_ids, number
from leaktight.data.properties import told
from leaktight.data.selection import holdout
from leaktight.data.source import Data

ENDINGS = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
_LABELS = ("label", "target", "class", "y")


class Csv(ColumnRules, FileSource):
    r"""A table in a text file with a header, plain or `.gz`: one row per example, one column is the label.

    Columns of numbers become (value - mean) / standard deviation, columns of words one column per word, or one id. Means, deviations and
    words come from the training rows alone; a word that only the test rows have is all zeros, or id 0. Ids are for models with embeddings
    (`wide_deep`); the data's `columns` say which position holds what. In split learning each party can learn its columns from
    its own cells, so nothing of that leaves it but how many ids a column has, and hashed ids need nothing at all.

    Args:
        path: the file.
        train_limit: keep at most so many training rows, each class in its share; None keeps all.
        test_limit: the same for test rows.
        test_path: a second file with the test rows; None holds out a share of the first.
        test_share: what part is held out for testing, in (0, 1).
        label: the column with the label; empty looks for `label`, `target`, `class` or `y`.
        positive: of two labels the one that counts as positive, class 1, such as a rare one that must stay private; empty takes the last
            in order.
        ignore: columns to leave out, such as an id.
        categorical: columns of numbers to treat as words.
        columns: the columns' names, for a file without a header.
        separator: what stands between cells; None means a tab for `.tsv` and a comma otherwise.
        missing: what to do about empty cells, `?`, `NA` and `NaN`: `error`, or `fill` with the mean, or for words with none of them.
        most_words: refuse a column of words with more different ones than this, if they become one-hot.
        words: `one_hot`, a column for each word; `ids`, its number among the training words; `hashed`, a number that follows from it alone.
        buckets: how many ids hashed words share, at least 1; fewer mix more words up.
        logarithm: columns of numbers in which sign(v) log(1 + |v|) takes a value's place, as is usual for counts; `*` stands for any text.
        standardise: whether numbers are brought to mean 0 and deviation 1 by the training rows.
        property: the column with a private property; it is no input. Empty means none.
        property_positive: the cell that means that a row has the property; every other one means that it has not. Empty decides between two:
            of two numbers the larger one, of `false` and `true` or `no` and `yes` the latter, of two other words the rarer one in all rows.

    Example:
        >>> import tempfile, pathlib
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = pathlib.Path(folder, "a.csv")
        ...     _ = file.write_text("age,job,label\n" + "30,cook,no\n40,clerk,yes\n" * 5)
        ...     data = Csv(path=file).load()
        >>> data.names, data.train.inputs[0].tolist()
        (('no', 'yes'), [-1.0, 0.0, 1.0])
    """

    kind: Literal["csv"] = "csv"
    test_path: Location | None = None
    test_share: Share = 0.2
    label: str = ""
    positive: str = ""
    ignore: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    separator: Annotated[str, Field(min_length=1, max_length=1)] | None = None

    @property
    def places(self) -> tuple[Path, ...]:
        """Both files."""
        return (self.place, Path(self.test_path).expanduser()) if self.test_path else (self.place,)

    # It comes after the method above, as from here on the name is no longer Python's decorator.
    property: str = ""
    property_positive: str = ""

    @model_validator(mode="after")
    def _consistent(self) -> Csv:
        if self.property_positive and not self.property:
            raise InvalidValue("The `property_positive` of csv must come with a `property`. Got none; name the column too.")
        return self

    @classmethod
    def fits(cls, path: Path) -> bool:
        """Whether this is a file whose name ends in `.csv`, `.tsv`, or either with `.gz`."""
        return path.is_file() and path.name.lower().endswith(ENDINGS)

    def read(self) -> Data:
        """Read and encode the table."""
        header, train = self._rows(self.place)
        if self.test_path is None:
            train_index, test_index = holdout(train.labels, self.test_share)
            train, test = train.take(train_index), train.take(test_index)
        else:
            test_header, test = self._rows(self.places[-1])
            if test_header != header:
                raise InvalidValue(
                    f"The file `{self.test_path}` must have the columns of `{self.path}`, in their order. It does not."
                )
        train_labels, test_labels, names = number(train.labels, test.labels, f"The file `{self.place}`", self.positive)
        train, test, private = self._told(replace(train, labels=train_labels), replace(test, labels=test_labels))
        train, test = self.limited(train, test)
        columns = self.learned(header, train.inputs)
        ours, theirs = (part.batch(encoded(columns, part.inputs)) for part in (train, test))
        return Data(ours, theirs, len(names), names, described(columns), private)

    def _told(self, train: Part, test: Part) -> tuple[Part, Part, str]:
        """Return both parts with 0 and 1 for the cells of the property, and what it is called."""
        if train.properties is None or test.properties is None:
            return train, test, ""
        what = f"The column `{self.property}` of `{self.place}`"
        ours, theirs, positive = told(train.properties, test.properties, self.property_positive, what)
        return replace(train, properties=ours), replace(test, properties=theirs), f"{self.property}: {positive}"

    def _rows(self, file: Path) -> tuple[list[str], Part]:
        """Return the names of the kept columns, and their cells with the labels and the cells of the property."""
        header, rows = read_cells(file, self.columns, self.separator)
        label = self._label(header, file)
        private = [self.property] if self.property else []
        for name in (*self.ignore, *self.categorical, *private):
            if name not in header:
                raise InvalidValue(f"The file `{file}` has no column `{name}`. {did_you_mean(name, header)}")
        if header[label] in private:
            raise InvalidValue(
                f"The `property` of csv must be another column than the label. Got `{self.property}` for both; choose another one."
            )
        kept = [at for at, name in enumerate(header) if name not in (header[label], *private, *self.ignore)]
        if not kept:
            raise InvalidValue(f"The file `{file}` must have a column beside the label. Got none instead.")
        cells: NDArray[Any] = np.array(rows, dtype=object)
        ids = as_ids(_present(cells[:, label], "label", file).astype(str), f"The labels of `{file}`")
        properties = _present(cells[:, header.index(self.property)], "property", file) if private else None
        return [header[at] for at in kept], Part(cells[:, kept], ids, properties)

    def _label(self, header: Sequence[str], file: Path) -> int:
        if self.label:
            if self.label not in header:
                raise InvalidValue(f"The file `{file}` has no column `{self.label}`. {did_you_mean(self.label, header)}")
            return header.index(self.label)
        usual = [at for at, name in enumerate(header) if name.lower() in _LABELS]
        if len(usual) != 1:
            shown = ", ".join(f"`{name}`" for name in header[:30])
            raise InvalidValue(f"The `label` of csv must say which column of `{file}` is the label. Choose one of {shown}.")
        return usual[0]


def read_cells(file: Path, columns: Sequence[str] = (), separator: str | None = None) -> tuple[list[str], list[list[str]]]:
    """Return the header of a table and its rows, each as long as the header.

    Args:
        file: plain or `.gz`.
        columns: the header, if the file has none.
        separator: what stands between cells; None means a tab for `.tsv` and a comma otherwise.
    """
    try:
        text = read_bytes(file).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidValue(
            f"The file `{file}` must be text in UTF-8. Got byte {error.object[error.start]:#x} at {error.start}; save it as UTF-8."
        ) from None
    separator = separator or ("\t" if file.name.lower().removesuffix(".gz").endswith(".tsv") else ",")
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True, strict=True)
    header = list(columns)
    rows: list[list[str]] = []
    try:
        for row in reader:
            if not row:
                continue
            row = [cell.strip() for cell in row]
            if not header:
                header = row
            elif len(row) != len(header):
                raise InvalidValue(
                    f"The file `{file}` must have {len(header)} cells in each line. Got {len(row)} in line {reader.line_num}; check the `separator`."
                )
            else:
                rows.append(row)
    except csv.Error as error:
        raise InvalidValue(f"The file `{file}` must be a table of values. Line {reader.line_num} is not: {error}.") from None
    if len(set(header)) != len(header):
        twice = next(name for name in header if header.count(name) > 1)
        raise InvalidValue(f"The columns of `{file}` must have different names. Got `{twice}` more than once.")
    if not rows:
        raise InvalidValue(f"The file `{file}` must have a header and at least one row. Got no row instead.")
    return header, rows


def _present(cells: NDArray[Any], what: str, file: Path) -> NDArray[Any]:
    """Return cells none of which is missing."""
    empty = next((at for at, cell in enumerate(cells) if is_missing(cell)), None)
    if empty is not None:
        raise InvalidValue(f"The file `{file}` must have a {what} in each row. Got none in row {empty + 1}; remove the row.")
    return cells
