"""The table of bounds says what the code does."""

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
UNITS = {"": 1, "MiB": 1 << 20, "GiB": 1 << 30}
ROWS = re.findall(r"^\| .+ \| ([\d,]+) ?(\w*) \| `([\w.]+)` \|$", (ROOT / "docs/bounds.md").read_text(), re.M)
LIMIT = re.compile(r"^(?:LARGEST|MOST|DEEPEST|LONGEST|EXPANSION)\w*(?:, \w+)* =", re.M)


@pytest.mark.parametrize(("number", "unit", "place"), ROWS, ids=[row[2] for row in ROWS])
def test_a_number_of_the_table_is_the_constant(number: str, unit: str, place: str) -> None:
    module, _, name = place.rpartition(".")
    assert getattr(importlib.import_module(f"leaktight.{module}"), name) == int(number.replace(",", "")) * UNITS[unit]


@pytest.mark.parametrize("folder", ["core/input_file", "core/document", "core/tensor_file", "data", "captures"])
def test_no_bound_of_a_file_is_left_out(folder: str) -> None:
    source = ROOT / "src/leaktight" / folder
    files = sorted(source.glob("*.py")) if source.is_dir() else [source.with_suffix(".py")]
    found = {
        f"{'.'.join(file.relative_to(ROOT / 'src/leaktight').with_suffix('').parts)}.{name}"
        for file in files
        for line in LIMIT.findall(file.read_text())
        for name in line.removesuffix(" =").split(", ")
    }
    assert found
    assert found - {place for _, _, place in ROWS} == set()
