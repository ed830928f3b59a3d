"""Tables: comma-separated values, numbers standardised, words one-hot or as ids."""

from __future__ import annotations

import codecs
import csv
import io
import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from leaktight.core.errors import InvalidValue, did_you_mean
from leaktight.core.input_file import GIBIBYTE, MEBIBYTE, expansion_bound, in_words
from leaktight.data.column import is_missing
from leaktight.data.column_rules import ColumnRules, describe, encode
from leaktight.data.files import FileSource, Location, Part, Share, open_data
from leaktight.data.labels import as_ids, number
from leaktight.data.properties import mark_positive
from leaktight.data.selection import holdout
from leaktight.data.separator import LOOKED_AT, find_separator, has_decimal_commas
from leaktight.data.source import Data

ENDINGS = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".data", ".data.gz")
LARGEST_TABLE = 4 * GIBIBYTE
"""How many bytes a table may have, packed and unpacked; in memory each cell takes some fifty bytes more."""
MOST_CELLS, MOST_COLUMNS = 200_000_000, 100_000
LONGEST_LINE, LONGEST_NAME, MOST_EMPTY_LINES = 16 * MEBIBYTE, 1000, 1_000_000
"""The most cells and columns of a table; the longest line, in bytes, and column name; the most empty lines in a row."""
_LABELS = ("label", "target", "class", "y")


class Csv(ColumnRules, FileSource):
    r"""A table in a text file with a header, plain or `.gz`: one row per example, one column is the label.

    Columns of numbers become (value - mean) / standard deviation, columns of words one column per word, or one id.
    Where no comma parts cells, numbers may be written with one, as 1,5.
    Means, deviations and words come from the training rows alone; a word that only the test rows have is all zeros, or
    id 0. Ids are for models with embeddings (`wide_deep`); the data's `columns` say which position holds what. In split
    learning each party can learn its columns from its own cells, so nothing of that leaves it but how many ids a column
    has, and hashed ids need nothing at all.

    Args:
        path: the file.
        train_limit: keep at most so many training rows, each class in its share; None keeps all.
        test_limit: the same for test rows.
        test_path: a second file with the test rows; None holds out a share of the first.
        test_share: what part is held out for testing, in (0, 1).
        label: the column with the label; empty looks for `label`, `target`, `class` or `y`.
        positive: of two labels the one that counts as positive, class 1, such as a rare one that must stay private;
            empty takes the last in order.
        ignore: columns to leave out, such as an id.
        categorical: columns of numbers to treat as words.
        columns: the columns' names, for a file without a header.
        separator: what stands between cells; None finds it out: a comma, a semicolon, a tab or a bar.
        missing: what to do about empty cells, `?`, `NA` and `NaN`: `error`, or `fill` with the mean, or for words with
            none of them.
        most_words: refuse a column of words with more different ones than this, if they become one-hot.
        words: `one_hot`, a column for each word; `ids`, its number among the training words; `hashed`, a number that
            follows from it alone.
        buckets: how many ids hashed words share, at least 1; fewer mix more words up.
        logarithm: columns of numbers in which sign(v) log(1 + |v|) takes a value's place, as is usual for counts; `*`
            stands for any text.
        standardise: whether numbers are brought to mean 0 and deviation 1 by the training rows.
        private_property: the column with a private property; it is no input. Empty means none.
        private_property_positive: the cell that means that a row has the property; every other one means that it has
            not. Empty decides between two: of two numbers the larger one, of `false` and `true` or `no` and `yes` the
            latter, of two other words the rarer one in all rows.

    Example:
        >>> import tempfile, pathlib
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = pathlib.Path(folder, "a.csv")
        ...     with file.open("w") as rows:
        ...         for row in ("age,job,label", *("30,cook,no", "40,clerk,yes") * 5):
        ...             print(row, file=rows)
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
    private_property: str = ""
    private_property_positive: str = ""

    @model_validator(mode="after")
    def _consistent(self) -> Csv:
        if self.private_property_positive and not self.private_property:
            raise InvalidValue(
                "The `private_property_positive` of csv must come with a `private_property`. Got none; name the "
                "column too."
            )
        return self

    @classmethod
    def fits(cls, path: Path) -> bool:
        """Whether this is a file whose name ends in `.csv`, `.tsv`, `.data`, or one of them with `.gz`."""
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
        train, test, private = self._mark_property(
            replace(train, labels=train_labels), replace(test, labels=test_labels)
        )
        train, test = self.limit(train, test)
        columns = self.learn(header, train.inputs)
        ours, theirs = (part.batch(encode(columns, part.inputs)) for part in (train, test))
        return Data(ours, theirs, len(names), names, describe(columns), private)

    def _mark_property(self, train: Part, test: Part) -> tuple[Part, Part, str]:
        """Return both parts with 0 and 1 for the cells of the property, and what it is called."""
        if train.properties is None or test.properties is None:
            return train, test, ""
        what = f"The column `{self.private_property}` of `{self.place}`"
        ours, theirs, positive = mark_positive(train.properties, test.properties, self.private_property_positive, what)
        return replace(train, properties=ours), replace(test, properties=theirs), f"{self.private_property}: {positive}"

    def _rows(self, file: Path) -> tuple[list[str], Part]:
        """Return the names of the kept columns, and their cells with the labels and the cells of the property."""
        header, rows = read_cells(file, self.columns, self.separator)
        label = self.label_in(header, file)
        private = [self.private_property] if self.private_property else []
        for name in (*self.ignore, *self.categorical, *private):
            if name not in header:
                raise InvalidValue(f"The file `{file}` has no column `{name}`. {did_you_mean(name, header)}")
        if header[label] in private:
            raise InvalidValue(
                f"The `private_property` of csv must be another column than the label. Got `{self.private_property}` "
                "for both; choose another one."
            )
        kept = [at for at, name in enumerate(header) if name not in (header[label], *private, *self.ignore)]
        if not kept:
            raise InvalidValue(f"The file `{file}` must have a column beside the label. Got none instead.")
        cells: NDArray[Any] = np.array(rows, dtype=object)
        labels = f"The labels of `{file}`"
        ids = as_ids(as_words(_present(cells[:, label], "label", file), labels), labels)
        properties = _present(cells[:, header.index(self.private_property)], "property", file) if private else None
        return [header[at] for at in kept], Part(cells[:, kept], ids, properties)

    def label_in(self, header: Sequence[str], file: Path) -> int:
        """Return at which place of a header the label is."""
        if self.label:
            if self.label not in header:
                raise InvalidValue(
                    f"The file `{file}` has no column `{self.label}`. {did_you_mean(self.label, header)}"
                )
            return header.index(self.label)
        usual = [at for at, name in enumerate(header) if name.lower() in _LABELS]
        if len(usual) != 1:
            shown = ", ".join(f"`{name[:40]}`" for name in header[:30])
            raise InvalidValue(
                f"The `label` of csv must say which column of `{file}` is the label. Choose one of {shown}."
            )
        return usual[0]


def read_cells(
    file: Path, columns: Sequence[str] = (), separator: str | None = None
) -> tuple[list[str], list[list[str]]]:
    """Return the header of a table and its rows, each as long as the header.

    Args:
        file: plain or `.gz`.
        columns: the header, if the file has none.
        separator: what stands between cells; None finds it out: a comma, a semicolon, a tab or a bar.
    """
    separator = separator or _separator_in(file, len(columns))
    header = _check_header(list(columns), file)
    rows: list[list[str]] = []
    with open_data(file, LARGEST_TABLE) as content:
        reader = csv.reader(text_lines(content, file), delimiter=separator, skipinitialspace=True, strict=True)
        try:
            for row in reader:
                if not row:
                    continue
                row = [cell.strip() for cell in row]
                if not header:
                    header = _check_header(row, file)
                elif len(row) != len(header):
                    raise InvalidValue(
                        f"The file `{file}` must have {len(header)} cells in each line. Got {len(row)} in line "
                        f"{reader.line_num}; check the `separator`."
                    )
                else:
                    rows.append(row)
                    if len(rows) * len(header) > MOST_CELLS:
                        raise InvalidValue(
                            f"The file `{file}` must have at most {MOST_CELLS} cells. Got more; name a part of it."
                        )
        except csv.Error as error:
            raise InvalidValue(
                f"The file `{file}` must be a table of values. Line {reader.line_num} is not: {error}."
            ) from None
    if not rows:
        raise InvalidValue(f"The file `{file}` must have a header and at least one row. Got no row instead.")
    if separator != ",":
        _write_points(rows)
    return header, rows


def _write_points(rows: list[list[str]]) -> None:
    """Write numbers with a point that a table writes with a comma, as many do where commas do not part cells."""
    for at in range(len(rows[0])):
        if has_decimal_commas([row[at] for row in rows]):
            for row in rows:
                row[at] = row[at].replace(",", ".")


def _separator_in(file: Path, columns: int) -> str:
    lines: list[str] = []
    with open_data(file, LARGEST_TABLE) as content:
        for line in itertools.islice(text_lines(content, file), LOOKED_AT):
            lines.append(line)
            if sum(map(len, lines)) > MEBIBYTE:
                break
    return find_separator(lines, columns)


def text_lines(content: BinaryIO, file: Path) -> Iterator[str]:
    """Yield the lines of a text in UTF-8 one by one, with their ends; a line is never longer than `LONGEST_LINE`.

    Args:
        content: the open file.
        file: where it lies, for the error.
    """
    at = empty = 0
    while line := content.readline(LONGEST_LINE + 1):
        if len(line) > LONGEST_LINE:
            raise InvalidValue(
                f"The file `{file}` must have lines of at most {in_words(LONGEST_LINE)}. Got a longer one; check that "
                "it is a table."
            )
        empty = 0 if line.strip() else empty + 1
        if empty > MOST_EMPTY_LINES:
            raise InvalidValue(
                f"The file `{file}` must have at most {MOST_EMPTY_LINES} empty lines in a row. Got more; remove them."
            )
        try:
            text = (line if at else line.removeprefix(codecs.BOM_UTF8)).decode()
        except UnicodeDecodeError as error:
            raise InvalidValue(
                f"The file `{file}` must be text in UTF-8. Got byte {error.object[error.start]:#x} at "
                f"{at + error.start}; save it as UTF-8."
            ) from None
        at += len(line)
        # A line may end in a carriage return alone.
        yield from io.StringIO(text, newline="") if "\r" in text[:-2] else (text,)


def as_words(cells: NDArray[Any], what: str) -> NDArray[np.str_]:
    """Return cells as words of one length, as NumPy keeps them.

    One long word among many short ones would make all of them long.

    Args:
        cells: one for each row.
        what: whose they are, for the error.
    """
    lengths = [len(cell) for cell in cells]
    longest = max(lengths, default=0)
    if 4 * longest * len(lengths) > expansion_bound(4 * sum(lengths), LARGEST_TABLE):
        raise InvalidValue(f"{what} must be about as long as each other. Got one of {longest} characters; shorten it.")
    words: NDArray[np.str_] = cells.astype(str)
    return words


def _check_header(header: list[str], file: Path) -> list[str]:
    """Return the names of a table's columns, if they can be that."""
    if len(header) > MOST_COLUMNS:
        raise InvalidValue(
            f"The file `{file}` must have at most {MOST_COLUMNS} columns. Got {len(header)}; check its header."
        )
    long = next((name for name in header if len(name) > LONGEST_NAME), None)
    if long is not None:
        raise InvalidValue(
            f"The columns of `{file}` must have names of at most {LONGEST_NAME} characters. Got {len(long)}; check "
            "its header."
        )
    twice = next((name for name, count in Counter(header).items() if count > 1), None)
    if twice is not None:
        raise InvalidValue(f"The columns of `{file}` must have different names. Got `{twice}` more than once.")
    return header


def _present(cells: NDArray[Any], what: str, file: Path) -> NDArray[Any]:
    """Return cells none of which is missing."""
    empty = next((at for at, cell in enumerate(cells) if is_missing(cell)), None)
    if empty is not None:
        raise InvalidValue(
            f"The file `{file}` must have a {what} in each row. Got none in row {empty + 1}; remove the row."
        )
    return cells
