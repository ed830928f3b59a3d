"""Separators: what stands between the cells of a table, found from its first lines."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence

from leaktight.data.column import is_missing

SEPARATORS = (",", ";", "\t", "|")
"""What is looked for, the commonest first."""
LOOKED_AT = 100
"""How many lines are looked at."""
_DECIMAL, _THOUSANDS = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?"), re.compile(r",\d{3}$")


def find_separator(lines: Sequence[str], columns: int = 0) -> str:
    """Return what most likely stands between the cells of lines: what splits the header, and each line into as many.

    Quoted cells may hold any of them. Where several fit, the one that makes most cells wins, and of equals the
    commonest.

    Args:
        lines: the first lines of a table, with or without their ends; the first is the header, unless `columns` says
            how many cells a line has.
        columns: how many cells a line has, if that is known; 0 takes it from the first line.

    Example:
        >>> find_separator(["age;job", "30,5;cook", "40;clerk, or cook"])
        ';'
        >>> find_separator(["name|age", '"a, b, c"|3']), find_separator(["alone", "1"])
        ('|', ',')
    """

    def score(separator: str) -> tuple[float, int]:
        rows = _rows(lines, separator)
        wanted = columns or (len(rows[0]) if rows else 0)
        if wanted < 2:
            return 0.0, 0
        return sum(len(row) == wanted for row in rows) / len(rows), wanted

    return max(SEPARATORS, key=score)


def _rows(lines: Sequence[str], separator: str) -> list[list[str]]:
    """Return the cells of lines up to one that cannot be read, which has none.

    That the last line looked at ends within quotes says nothing.
    """
    rows: list[list[str]] = []
    reader = csv.reader(lines, delimiter=separator, skipinitialspace=True, strict=True)
    try:
        for row in reader:
            if row:
                rows.append(row)  # noqa: PERF401
    except csv.Error:
        if reader.line_num < len(lines):
            rows.append([])
    return rows


def has_decimal_commas(cells: Sequence[str]) -> bool:
    """Return whether the numbers of a column are written with a comma for the point, as 1,5.

    That is so if every cell that has a comma is such a number and every other one is whole or missing. Where each has
    three digits after its comma, it may as well stand for thousands, and nothing is said.

    Example:
        >>> has_decimal_commas(["1,5", "2", "?"]), has_decimal_commas(["1,500", "2,250"]), has_decimal_commas(["a, b"])
        (True, False, False)
    """
    written = [cell for cell in cells if "," in cell]
    if not written or not all(map(_DECIMAL.fullmatch, written)) or all(map(_THOUSANDS.search, written)):
        return False
    return all("," in cell or is_missing(cell) or cell.lstrip("+-").isdecimal() for cell in cells)
