"""What every benchmark prints: rows of name, value, unit, bar and meets."""

from __future__ import annotations

import argparse
import dataclasses
import json
from pathlib import Path


@dataclasses.dataclass(frozen=True)
class Row:
    """One measured number; `bar` is the number asked for, `at_least` says on which side of it to be."""

    name: str
    value: float
    unit: str
    bar: float | None = None
    at_least: bool = True

    @property
    def meets(self) -> bool | None:
        """Whether the bar is met; None where there is no bar."""
        if self.bar is None:
            return None
        return self.value >= self.bar if self.at_least else self.value <= self.bar


def parser(description: str | None) -> argparse.ArgumentParser:
    """Return the argument parser that every benchmark starts from."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--json", type=Path, help="write the rows to this file too")
    return made


def show(rows: list[Row], file: Path | None) -> None:
    """Print the rows, and write them if asked."""
    for row in rows:
        bar = (
            ""
            if row.bar is None
            else f"   {'at least' if row.at_least else 'at most'} {row.bar:g}: {'met' if row.meets else 'MISSED'}"
        )
        print(f"{row.name:<58} {row.value:>12.4g} {row.unit}{bar}")
    if file:
        table = [{**dataclasses.asdict(row), "meets": row.meets} for row in rows]
        file.write_text(json.dumps(table, indent=2) + "\n")
