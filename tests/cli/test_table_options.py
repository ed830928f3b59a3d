"""The options of tables: the same on every command that reads one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from leaktight.cli.table_options import TableOptions
from leaktight.core.errors import InvalidValue
from leaktight.data import Criteo, Csv, Digits
from leaktight.running import Store

Call = Callable[..., Any]
PLAN = """
[scenario]
rounds = 1
participants = 1
batch_size = 4
model = "mlp"
data = { kind = "csv", path = "people.csv", label = "paid" }
[[attacks]]
kind = "analytic"
[grid]
victims = 2
"""


@pytest.fixture
def people(tmp_path: Path) -> Path:
    rows = [f"{row};{20 + row % 7};{'cook' if row % 2 else '?'};{'late' if row % 3 else 'soon'}" for row in range(40)]
    (tmp_path / "people.csv").write_text("\n".join(["person;age;job;paid", *rows]) + "\n")
    (tmp_path / "plan.toml").write_text(PLAN)
    return tmp_path / "people.csv"


@pytest.mark.parametrize(
    "command", [("audit",), ("layers",), ("train",), ("init",), ("split", "label-party"), ("split", "feature-party")]
)
def test_every_command_that_reads_a_table_has_them(leaktight: Call, command: tuple[str, ...]) -> None:
    said = leaktight(*command, "--help")
    assert said.code == 0
    for option in ("separator", "positive", "ignore", "categorical", "missing", "words", "buckets"):
        assert f"--{option}" in said.out


def test_an_audit_reads_the_table_as_it_is_told(leaktight: Call, people: Path, tmp_path: Path) -> None:
    told = ["--ignore", "person", "--missing", "fill", "--positive", "soon"]
    said = leaktight("audit", "plan.toml", *told, "--workers", "1", "--out", "out")
    assert said.code == 0, said.err
    with Store.read(tmp_path / "out") as store:
        [scenario] = store.plan().scenarios.values()
    data = scenario.data
    assert (data.ignore, data.missing, data.positive) == (("person",), "fill", "soon")
    assert data.load().names == ("late", "soon")


def test_data_of_the_command_line_takes_them_too(leaktight: Call, people: Path) -> None:
    said = leaktight(
        "layers", "--data", "people.csv:paid", "--property", "job", "--model", "mlp", "--separator", "comma"
    )
    assert said.code == 2
    assert "has no column `paid`" in said.err


def test_a_training_reads_the_table_as_it_is_told(leaktight: Call, people: Path, tmp_path: Path) -> None:
    assert "missing; set `missing`" in leaktight("train", "plan.toml", "--out", "model").err
    said = leaktight("train", "plan.toml", "--missing", "fill", "--ignore", "person", "--out", "model")
    assert said.code == 0, said.err
    assert json.loads((tmp_path / "model" / "training.json").read_text())["utility"]


def test_a_tab_has_a_name() -> None:
    for name in ("tab", "TAB", r"\t", "\t"):
        assert TableOptions(separator=name).settings == {"separator": "\t"}
    assert TableOptions(separator=";", ignore=[]).settings == {"separator": ";"}
    assert TableOptions(columns="age, job,label").settings == {"columns": ["age", "job", "label"]}


def test_only_a_table_can_be_told() -> None:
    assert TableOptions(words="hashed", buckets=7).apply(Csv(path="a.csv")).buckets == 7
    assert TableOptions(buckets=7).apply(Criteo(path="a.txt")).buckets == 7
    with pytest.raises(
        InvalidValue, match=r"`--separator` says how a table \(\.csv, \.tsv\) is read. The data is of kind `digits`"
    ):
        TableOptions(separator=";").apply(Digits())
    with pytest.raises(
        InvalidValue, match=r"The `separator` of csv must be a text whose length is at most 1\. Got ';;'"
    ):
        TableOptions(separator=";;").apply(Csv(path="a.csv"))
    with pytest.raises(InvalidValue, match="The `buckets` of csv must be at least 1"):
        TableOptions(buckets=0).apply(Csv(path="a.csv"))


def test_options_for_no_table_are_refused(leaktight: Call) -> None:
    said = leaktight("audit", "--data", "digits", "--model", "mlp", "--ignore", "age")
    assert (said.code, said.out) == (2, "")
    assert "`--ignore` says how a table (.csv, .tsv) is read." in said.err
