"""Criteo: clicks on display advertisements, 13 counts and 26 categories."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from leaktight.core.errors import InvalidValue
from leaktight.data.files import FileSource, Location, Share, open_data
from leaktight.data.source import Data
from leaktight.data.table import LARGEST_TABLE, LONGEST_LINE, Csv

COUNTS = tuple(f"I{number}" for number in range(1, 14))
CATEGORIES = tuple(f"C{number}" for number in range(1, 27))
LABELS = ("0", "1")
_HEADER = "the first column says whether there was a click, and there is no header."
_ENDINGS = (".txt", ".csv", ".tsv", ".txt.gz", ".csv.gz", ".tsv.gz")


class Criteo(FileSource):
    """The Criteo display advertising data: a click or none, 13 counts `I1` to `I13` and 26 categories `C1` to `C26`.

    The original form is separated by tabs, without a header, an empty cell is a missing one: counts become sign(v)
    log(1 + |v|), a missing one 0; categories become hashed ids, a missing one 0. A form separated by commas holds whole
    numbers that someone has made already: the counts' buckets and the categories' ids. There all 39 columns are
    categories. Nothing is learned from the training rows.

    Args:
        path: the file, plain or `.gz`.
        train_limit: keep at most so many training rows, each class in its share; None keeps all.
        test_limit: the same for test rows.
        test_path: a second file with the test rows; None holds out a share of the first.
        test_share: what part is held out for testing, in (0, 1).
        buckets: how many ids the words of one column share, at least 1; fewer mix more words up.

    Example:
        >>> print(Criteo(path="train.txt.gz", buckets=100))
        criteo(path='train.txt.gz', buckets=100)

    Differs from the paper: It does not say how counts and categories are encoded; it splits 90 to 10 at random, here
    each class keeps its share in both parts.

    References:
        Li et al., Label Leakage and Protection in Two-party Split Learning, Section 4; Criteo Labs, Display Advertising
        Challenge, 2014.
    """

    kind: Literal["criteo"] = "criteo"
    test_path: Location | None = None
    test_share: Share = 0.1
    # An id travels as a single-precision number, which is exact up to here.
    buckets: Annotated[int, Field(ge=1, lt=2**24)] = 1000

    @classmethod
    def fits(cls, path: Path) -> bool:
        """Whether this is a text file with `criteo` in its name."""
        name = path.name.lower()
        return path.is_file() and "criteo" in name and name.endswith(_ENDINGS)

    @property
    def places(self) -> tuple[Path, ...]:
        """Both files."""
        return (self.place, Path(self.test_path).expanduser()) if self.test_path else (self.place,)

    def read(self) -> Data:
        """Read the table as one without a header."""
        firsts = [_first_line(place) for place in self.places]
        original = "\t" in firsts[0]
        for place, line in zip(self.places, firsts, strict=True):
            label = line.partition("\t" if original else ",")[0].strip(' "\r\ufeff')
            if label and label not in LABELS:
                raise InvalidValue(f"The labels of `{place}` must be 0 and 1. Got `{label[:40]}` in line 1; {_HEADER}")
        data = Csv(
            path=self.path,
            train_limit=self.train_limit,
            test_limit=self.test_limit,
            test_path=self.test_path,
            test_share=self.test_share,
            label="label",
            columns=("label", *COUNTS, *CATEGORIES),
            separator="\t" if original else ",",
            categorical=CATEGORIES if original else (*COUNTS, *CATEGORIES),
            logarithm=COUNTS if original else (),
            missing="fill",
            words="hashed",
            buckets=self.buckets,
            standardise=False,
        ).read()
        strange = [name for name in data.names if name not in LABELS]
        if strange:
            raise InvalidValue(f"The labels of `{self.place}` must be 0 and 1. Got `{strange[0][:40]}` too; {_HEADER}")
        return data


def _first_line(file: Path) -> str:
    with open_data(file, LARGEST_TABLE) as content:
        return content.readline(LONGEST_LINE).decode(errors="replace")
