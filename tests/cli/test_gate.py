"""`leaktight gate` on a real audit: exit codes, one line for each criterion, and the files a build server takes."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

Call = Callable[..., Any]
LENIENT = ("--leaks", "any", "--unknown", "any", "--useless", "any")


def test_it_fails_with_code_1_and_says_why(leaktight: Call, audited: Path) -> None:
    said = leaktight("gate", str(audited))
    assert said.code == 1
    lines = said.out.splitlines()
    assert [line.partition(":")[0] for line in lines[:-1]] == [
        *("measured", "unfinished", "leaks", "refuted", "unknown", "useless")
    ]
    assert lines[-1].startswith("Gate failed: ")
    assert said.err == ""


def test_it_passes_with_code_0(leaktight: Call, audited: Path) -> None:
    said = leaktight("gate", str(audited), *LENIENT)
    assert (said.code, said.out.splitlines()[-1]) == (0, "Gate passed.")


def test_files_are_written_also_where_it_fails(leaktight: Call, audited: Path, tmp_path: Path) -> None:
    names = {"--junit": "out/gate.xml", "--sarif": "out/gate.sarif", "--markdown": "out/gate.md"}
    plan = tmp_path / "audit.toml"
    options = [word for pair in names.items() for word in pair]
    plan.write_text("")
    assert leaktight("gate", str(audited), *options, "--plan", str(plan)).code == 1
    assert int(ElementTree.fromstring((tmp_path / "out/gate.xml").read_text()).get("failures", 0)) > 0  # noqa: S314
    results = json.loads((tmp_path / "out/gate.sarif").read_text())["runs"][0]["results"]
    assert {r["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for r in results} == {"audit.toml"}
    assert (tmp_path / "out/gate.md").read_text().startswith("## Leaktight: failed")


def test_the_summary_alone_says_the_same(leaktight: Call, audited: Path, tmp_path: Path) -> None:
    whole = leaktight("gate", str(audited), "--accuracy-loss", "2")
    (tmp_path / "alone").mkdir()
    shutil.copy(audited / "summary.json", tmp_path / "alone")
    for place in ("alone", "alone/summary.json"):
        said = leaktight("gate", place, "--accuracy-loss", "2")
        assert (said.code, said.out) == (whole.code, whole.out)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("gate", "nowhere"), "There is no audit in `nowhere`."),
        (("gate", "AUDITED", "--leaks", "few"), "`--leaks` must be `none`, `any`, or how many are allowed. Got 'few'"),
        (("gate", "AUDITED", "--defence", "magic"), "The audit has no verdict on a defence `magic`. Known are:"),
        (("gate", "AUDITED", "--junit", "text/gate.xml"), "The file `text/gate.xml` cannot be written"),
        (("gate", "AUDITED", "--accuracy-loss", "nan"), "`--accuracy-loss` must be a number of points, at least 0."),
        (("gate", "AUDITED", "--plan", "plan.tml"), "There is no file `plan.tml` that SARIF could point at."),
        (("gate", "text"), "The file `text` is not JSON."),
        (("gate", "old.json"), "The file `old.json` is no summary of format 1."),
        (("gate", "half.json"), "The file `half.json` is not a summary as this release writes it: The `title` of"),
    ],
)
def test_what_cannot_be_read_has_code_2(
    leaktight: Call, audited: Path, tmp_path: Path, words: tuple[str, ...], sentence: str
) -> None:
    (tmp_path / "text").write_text("no json")
    (tmp_path / "old.json").write_text('{"verdicts": []}')
    (tmp_path / "half.json").write_text('{"format": 1, "verdicts": []}')
    said = leaktight(*(str(audited) if word == "AUDITED" else word for word in words))
    assert (said.code, said.out) == (2, "")
    assert sentence in said.err
    assert "Traceback" not in said.err


def test_the_example_of_a_workflow_uses_options_that_there_are(leaktight: Call) -> None:
    text = (Path(__file__).parents[2] / "examples" / "github-workflow.yml").read_text()
    commands = re.findall(r"leaktight (audit|gate)\b((?:[^\n]*\n?(?: +--[^\n]*\n)*))", text)
    assert [name for name, _ in commands if name] == ["audit", "gate"]
    for name, words in commands:
        known = leaktight(name, "--help").out
        options = re.findall(r"--[a-z-]+", words)
        assert len(options) >= 3
        assert [option for option in options if option not in known] == []
