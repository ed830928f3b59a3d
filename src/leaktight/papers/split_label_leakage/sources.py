"""The data sets in a folder: clicks in the sub-folder `ctr`, credit card clients in `tabular`."""

from __future__ import annotations

from pathlib import Path

from leaktight.core.errors import InvalidValue
from leaktight.data.criteo import Criteo
from leaktight.data.files import listing
from leaktight.data.table import Csv

CLICKS, CREDIT = "ctr", "tabular"
# SEX and the like are codes, and so are the months of delay: -2, -1 and 0 are not numbers of months.
_CODES = ("SEX", "EDUCATION", "MARRIAGE", "PAY_0", "PAY_2", "PAY_3", "PAY_4", "PAY_5", "PAY_6")


def find_criteo(folder: str) -> Criteo | None:
    """Return the Criteo data in `ctr`; None if there are none.

    A file with `train` in its name comes first; one that is called the same with `test` in its place has the test rows.
    Without such a pair a tenth of the first file is held out, as in the paper.
    """
    files = [path for path in _files(folder, CLICKS) if Criteo.fits(path)]
    train = next((path for path in files if "train" in path.name), files[0] if files else None)
    if train is None:
        return None
    test = train.with_name(train.name.replace("train", "test"))
    return Criteo(path=str(train), test_path=str(test) if test != train and test in files else None)


def need_criteo(folder: str) -> Criteo:
    """Return the Criteo data, or raise an error that says what is missing."""
    clicks = find_criteo(folder)
    if clicks is None:
        raise InvalidValue(
            f"The folder `{folder}` must have a sub-folder `{CLICKS}` with a Criteo file: .txt, .tsv or .csv, plain or "
            ".gz, with `criteo` in its name. It has none."
        )
    return clicks


def find_credit(folder: str) -> Csv | None:
    """Return the UCI set of credit card clients in `tabular`; None if it is not there."""
    table = next((path for path in _files(folder, CREDIT) if path.name.lower().startswith("uci_credit_card")), None)
    if table is None:
        return None
    return Csv(path=str(table), label="default.payment.next.month", ignore=("ID",), categorical=_CODES, words="ids")


def _files(folder: str, name: str) -> list[Path]:
    place = Path(folder).expanduser() / name
    return sorted(listing(place)) if place.is_dir() else []
