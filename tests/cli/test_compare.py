"""`leaktight compare` on real audits: what is printed, in 80 columns, and the page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from leaktight.cli.compare import fold, lines_of
from leaktight.cli.main import main
from leaktight.defences import TopK
from leaktight.findings.audit_comparison import Audit, compare, compare_audits
from leaktight.findings.summary import summarise

Call = Callable[..., Any]


@pytest.fixture(scope="module")
def again(tmp_path_factory: pytest.TempPathFactory, audited: Path) -> Path:
    """Return the same audit with a longer training."""
    folder = tmp_path_factory.mktemp("again")
    plan = (audited.parent / "small.toml").read_text()
    (folder / "small.toml").write_text(plan.replace("rounds = 1", "rounds = 2"))
    assert main(["audit", str(folder / "small.toml"), "--workers", "1", "--out", str(folder / "out")]) == 0
    return folder / "out"


def test_an_audit_is_the_same_as_itself(leaktight: Call, audited: Path) -> None:
    said = leaktight("compare", str(audited), str(audited))
    assert said.code == 0
    assert "changed between A and B." in said.out
    assert "None of " in said.out
    assert "reads the same (" in said.out
    assert ", on the same 3 victims" in said.out
    assert "Changed:" not in said.out


def test_what_was_measured_otherwise_is_said(leaktight: Call, audited: Path, again: Path) -> None:
    said = leaktight("compare", str(audited), str(again))
    assert said.code == 0
    assert "- scenario.rounds: A 1, B 2" in said.out
    assert "as two independent samples" in said.out
    assert "accuracy is " in said.out
    assert ", on the same test rows" in said.out


def test_a_page_is_written_beside_what_is_printed(leaktight: Call, audited: Path, tmp_path: Path) -> None:
    said = leaktight("compare", str(audited), str(audited), "--out", "compare.html")
    assert said.out.endswith("Page: compare.html\n")
    assert (tmp_path / "compare.html").read_text().startswith("<!doctype html>")


def test_an_earlier_page_is_kept(leaktight: Call, audited: Path, tmp_path: Path) -> None:
    (tmp_path / "compare.html").write_text("an earlier page")
    said = leaktight("compare", str(audited), str(audited), "--out", "compare.html")
    assert "The earlier compare.html was kept as compare-1.html." in said.err
    assert (tmp_path / "compare-1.html").read_text() == "an earlier page"


def test_a_leak_under_a_useless_model_says_both(made: Any) -> None:
    audits = [
        Audit(letter, letter, made.plan(), records, made.VERSIONS, {}, summarise(records))
        for letter, accuracy in (("A", 0.8), ("B", 0.1))
        for records in [(made.record(psnr=38), made.record(TopK(share=0.3), 31, accuracy))]
    ]
    lines = [line for _, line in lines_of(compare(audits))]
    assert lines.count("the model learned nothing in B") == 1


def test_it_folds_to_eighty_columns(audited: Path) -> None:
    told = [fold(line, indent, 80) for indent, line in lines_of(compare_audits([audited, audited]))]
    # The name of a folder is one word, however long it is.
    shown = [line for text in told if str(audited.parent) not in text for line in text.splitlines()]
    assert max(map(len, shown)) <= 80
    assert any(line.startswith("      ") for line in shown)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("AUDITED",), "A comparison takes 2 to 26 audits. Got 1 instead."),
        (("AUDITED", "nowhere"), "There is no audit in `nowhere`."),
    ],
)
def test_what_cannot_be_compared_gets_one_sentence(
    leaktight: Call, audited: Path, words: tuple[str, ...], sentence: str
) -> None:
    said = leaktight("compare", *(str(audited) if word == "AUDITED" else word for word in words))
    assert (said.code, said.out) == (2, "")
    assert sentence in said.err
