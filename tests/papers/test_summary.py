"""Summaries: which checks judge a claim, and why one does not hold."""

import pytest

from leaktight.core.metric import Reading
from leaktight.papers.check import Check, above
from leaktight.papers.summary import Claim, Reason, Summary, result_of

HOLDS, FAILS = above("Gain at the cut, one", 1.0, 0), above("Gain at the cut, two", -1.0, 0)
OPEN = above("Gain at the cut, one", Reading(name="gain", value=0.1, low=-1.0, high=1.0), 0)
GAP = above("Gain at the cut, one", None, 0)


def reason(why: str, where: str = "") -> Reason:
    return Reason(checks="Gain", where=where, why=why, unless="More seeds say otherwise.")


def test_a_claim_has_the_checks_whose_names_begin_and_end_so() -> None:
    every = Claim(claim="It gains.", published="a lot", checks="Gain at the cut")
    assert every.among([HOLDS, above("Loss", 1.0, 0), FAILS]) == [HOLDS, FAILS]
    assert every.model_copy(update={"where": "two"}).among([HOLDS, FAILS]) == [FAILS]


def test_only_a_check_that_does_not_hold_is_explained_and_by_the_first_reason() -> None:
    summary = Summary(reasons=(reason("Too short.", where="two"), reason("Something else.")))
    explained = summary.explain([HOLDS, FAILS, OPEN, above("Loss", -1.0, 0), GAP])
    assert [check.why for check in explained] == ["", "Too short.", "", "", ""]
    assert explained[1].unless == "More seeds say otherwise."


def test_an_earlier_reason_does_not_outlive_its_finding() -> None:
    explained = Summary(reasons=(reason("Too short."),)).explain([FAILS])
    assert Summary().explain(explained) == [FAILS]


@pytest.mark.parametrize(
    ("checks", "said"),
    [
        ([], "not run"),
        ([HOLDS], "holds"),
        ([FAILS, FAILS], "does not hold"),
        ([OPEN], "undecided"),
        ([HOLDS, FAILS, OPEN], "holds in 1 of 3, 1 undecided"),
        ([GAP], "not measured"),
        ([HOLDS, OPEN, GAP, GAP], "holds in 1 of 4, 1 undecided, 2 not measured"),
    ],
)
def test_a_claim_holds_as_far_as_its_checks_do(checks: list[Check], said: str) -> None:
    assert result_of(checks) == said
