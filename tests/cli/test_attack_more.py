"""`leaktight attack-more` and `--budget`, on a small audit."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from leaktight.attacks import Analytic
from leaktight.core.record import Record, Status
from leaktight.running import Store, time_budget

Call = Callable[..., Any]


def labels(records: list[Record]) -> set[str]:
    return {record.cell.label for record in records if record.cell.purpose == "measure"}


@pytest.fixture
def cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the suite with the one attack that takes no time."""
    monkeypatch.setattr("leaktight.attacks.strongest.whole_suite", lambda: {"analytic": Analytic()})


@pytest.fixture
def folder(audited: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(audited, tmp_path / "copy"))


@pytest.mark.usefixtures("cheap")
def test_it_goes_on_against_what_is_not_broken_and_writes_the_report_anew(leaktight: Call, folder: Path) -> None:
    (folder / "report.html").unlink()
    said = leaktight("attack-more", str(folder), "--workers", "1")
    assert said.code == 0
    assert ", and 2 further attacks, and 3 checks of the audit itself. " in said.err
    assert f"Report: {folder / 'report.html'}" in said.out
    assert (folder / "report.html").is_file()
    assert (folder / "summary.json").is_file()
    with Store.read(folder) as store:
        assert labels(store.records()) == {"analytic", "strongest, 4 times as long"}
        assert {record.status for record in store.records()} == {Status.DONE}
    assert leaktight("attack-more", str(folder), "--workers", "1", "--redact").code == 0
    with Store.read(folder) as store:
        assert "strongest, 16 times as long" in labels(store.records())


def test_a_folder_without_an_audit_is_answered_in_a_sentence(leaktight: Call, tmp_path: Path) -> None:
    said = leaktight("attack-more", str(tmp_path / "nothing"))
    assert (said.code, said.out) == (2, "")
    assert said.err.count("\n") == 1
    assert "nothing" in said.err


@pytest.mark.parametrize("budget", ["soon", "5s"])
def test_a_budget_that_is_no_time_is_answered_in_a_sentence(
    leaktight: Call, audited: Path, tmp_path: Path, budget: str
) -> None:
    said = leaktight("audit", str(audited.parent / "small.toml"), "--budget", budget)
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith("Error: A budget must be")
    assert said.err.count("\n") == 1
    assert not list(tmp_path.glob("leaktight-*"))


def test_a_budget_for_a_plan_without_the_suite_is_answered_in_a_sentence(leaktight: Call, audited: Path) -> None:
    said = leaktight("audit", str(audited.parent / "small.toml"), "--budget", "30s", "--workers", "1")
    assert said.code == 2
    assert "A budget is for the suite of attacks. Add `[[attacks]]` with `preset" in said.err


@pytest.mark.usefixtures("cheap")
def test_a_budget_leaves_its_list_in_the_folder(leaktight: Call, audited: Path, tmp_path: Path) -> None:
    plan = (audited.parent / "small.toml").read_text().replace('kind = "analytic"', 'preset = "strongest"')
    (tmp_path / "suite.toml").write_text(plan)
    said = leaktight("audit", "suite.toml", "--budget", "2h", "--workers", "1")
    assert (said.code, said.err[:17]) == (0, "First it measures")
    found = time_budget.read_budget(tmp_path / "leaktight-suite")
    assert (found.seconds, found.left_out, found.names, found.effort) == (7200.0, {}, ("analytic",), 1.0)
    assert "Budget of 2 h" in said.err
