"""`--quiet` and `--json`: the result alone, and JSON for another program."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from leaktight.running import Store

Call = Callable[..., Any]


@pytest.fixture
def again(leaktight: Call, audited: Path) -> Call:
    """Run the small audit again, which computes nothing."""
    plan = str(audited.parent / "small.toml")
    return lambda *words: leaktight("audit", plan, "--workers", "1", "--out", str(audited), *words)


def test_quiet_prints_words_and_the_place_of_the_report(again: Call, audited: Path) -> None:
    said = again("--quiet")
    assert (said.code, said.err) == (0, "")
    assert said.out.splitlines() == [
        "Images, no defence: leaks",
        "Images, Gaussian noise (std 0.5): useless",
        "Labels, no defence: leaks",
        "Labels, Gaussian noise (std 0.5): useless",
        f"Report: {audited / 'report.html'}",
    ]
    assert again("-q").out == said.out


def test_json_is_all_there_is_on_standard_output(again: Call, leaktight: Call, audited: Path) -> None:
    said = again("--json")
    assert said.code == 0
    assert said.out == (audited / "summary.json").read_text()
    assert json.loads(said.out)["verdicts"][0]["verdict"] == "leaks"
    assert said.err.startswith("Small: 4 cells: no defence and 1 defence x 1 attack, and 2 checks of the audit itself.")
    silent = again("--json", "--quiet")
    assert (silent.out, silent.err) == (said.out, "")
    assert leaktight("report", str(audited), "--json").out == said.out
    elsewhere = leaktight("report", str(audited), "--json", "--out", "other.html", "--redact")
    assert json.loads(elsewhere.out)["verdicts"]
    assert Path("other.html").is_file()


def test_a_report_as_json_counts_what_is_missing(
    leaktight: Call, audited: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Store, "missing", lambda store: 3)
    said = json.loads(leaktight("report", str(audited), "--json", "--out", "unfinished.html").out)
    assert said["cells"]["missing"] == 3


def test_a_fresh_run_gives_title_lines_and_the_first_answer(leaktight: Call, audited: Path) -> None:
    said = leaktight("audit", str(audited.parent / "small.toml"), "--workers", "1", "--out", "fresh", "--json")
    lines = said.err.splitlines()
    assert lines[0].startswith("Small: 4 cells: ")
    [first] = [at for at, line in enumerate(lines) if line.startswith("First answer. No defence: leaks. ")]
    [defended] = [at for at, line in enumerate(lines) if " analytic against gaussian_noise" in line]
    assert first < defended
    assert [line.split()[0] for line in lines if "/" in line.split()[0]] == [f"{number}/7" for number in range(1, 8)]
    assert "left)" in lines[defended - 1]
    assert lines[-1].startswith("Took ")
    json.loads(said.out)


def test_failed_cells_are_said_even_so(leaktight: Call, audited: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from leaktight.attacks.analytic import Analytic

    def fail(*_: object) -> None:
        raise RuntimeError("no luck")

    monkeypatch.setattr(Analytic, "run", fail)
    said = leaktight("audit", str(audited.parent / "small.toml"), "--workers", "1", "--quiet")
    assert said.code == 1
    assert said.err.startswith("Failed: 4 cells: RuntimeError: no luck (")
    assert said.out.startswith("Nothing was measured, so nothing can be said.\nReport: ")
