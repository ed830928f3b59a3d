"""The pages about papers are those that the results make, and the results have numbers only."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from leaktight.papers import PAPERS

DOCS = Path(__file__).resolve().parents[2] / "docs"
SPEC = importlib.util.spec_from_file_location("paper_pages", DOCS / "paper_pages.py")
PAGES = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(PAGES)

RESULTS = {name: done for name, done in PAGES.results().items() if done is not None}
MOST_BYTES, LONGEST = 2_000_000, 1_000


def test_the_pages_are_what_the_command_makes() -> None:
    for path, text in PAGES.pages().items():
        assert path.is_file(), f"{path.name} is missing: run `python docs/paper_pages.py`"
        assert path.read_text(encoding="utf-8") == text, f"{path.name} differs: run `python docs/paper_pages.py`"
    assert PAGES.stale() == [], "run `python docs/paper_pages.py`"


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_has_numbers_and_no_data(name: str) -> None:
    path = DOCS / "results" / f"{name}.json"
    text = path.read_text(encoding="utf-8")
    assert len(text) < MOST_BYTES
    assert not re.search(r'"[^"]*(/home|/root|/work|/tmp|/Users|[A-Z]:\\\\)', text)
    assert not re.search(r"[A-Za-z0-9+/=]{200,}", text), "a long run of letters may be an encoded picture"
    # Rows are flat by their type: each entry is a number or a short text.
    texts = [entry for rows in RESULTS[name].tables.values() for row in rows for entry in row.values()]
    assert all(len(entry) < LONGEST for entry in texts if isinstance(entry, str))


@pytest.mark.parametrize("name", RESULTS)
def test_every_check_that_does_not_hold_says_why_and_no_reason_is_left_over(name: str) -> None:
    failing = [check for check in RESULTS[name].checks if check.word == "does not hold"]
    assert [check.name for check in failing if not (check.why and check.unless)] == []
    reasons = PAPERS[name].summary.reasons
    assert [reason for reason in reasons if not any(map(reason.names, failing))] == []


@pytest.mark.parametrize("name", RESULTS)
def test_every_claim_is_judged_by_a_check(name: str) -> None:
    claims = PAPERS[name].summary.claims
    assert [claim.claim for claim in claims if not claim.among(RESULTS[name].checks)] == []


@pytest.mark.parametrize("paper", PAPERS.values(), ids=PAPERS)
def test_every_paper_says_what_it_claims_and_what_was_not_run(paper) -> None:
    summary = paper.summary
    assert summary.about
    assert summary.claims
    assert summary.not_run
