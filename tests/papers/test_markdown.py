"""Pages of the documentation: what a result says, and nothing where there is none."""

import pytest

from leaktight.core.errors import InvalidValue
from leaktight.papers.check import Check, above
from leaktight.papers.markdown import MISSING, NO_REASON, claims_table, mark, paper_page, pictures, read_result
from leaktight.papers.paper import Paper
from leaktight.papers.reproduction import Reproduction
from leaktight.papers.row import claims
from leaktight.papers.summary import Claim, Reason, Summary

GAIN = Check(name="Gain, one", value=0.5, expected="above 0", holds=True, low=0.25, high=0.75)
SUMMARY = Summary(
    about="Noise hides *labels*.",
    claims=(
        Claim(claim="It gains.", published="0.9 (Table 1)", checks="Gain"),
        Claim(claim="It gains still.", published="not measured", checks="Strongest", attacker="strongest"),
    ),
    reasons=(Reason(checks="Strongest", why="The attack adds messages up.", unless="A bound on all of them holds."),),
    not_run=("The whole set.",),
)
ROWS = [{"defence": name, "auc": value} for name, value in (("none", 0.9), ("a|b", 0.5))]


@pytest.fixture
def paper():
    return Paper(name="some-paper", title="A paper (2020)", setup=lambda order: None, experiments=(), summary=SUMMARY)


@pytest.fixture
def done():
    return Reproduction(
        paper="some-paper",
        scale="small",
        seed=0,
        seconds=1.0,
        tables={"leak": ROWS, "nothing": []},
        keys={"leak": ("defence",), "nothing": ("defence",)},
        published={"leak": [{"defence": "none", "auc": 0.8}], "nothing": claims(("It is less.", "Fig. 1"))},
        checks=(GAIN, above("Strongest, one", -1.0, 0), above("Other", 0.0, 0), above("Gap", None, 0)),
        remarks=("No set `x|y`.",),
    )


def section(page, title):
    return page.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def test_a_page_without_a_result_has_no_number_of_ours(paper):
    page = paper_page(paper, None)
    assert f"**{MISSING.capitalize()}.**" in page
    assert f"| It gains. | 0.9 (Table 1) | - | {MISSING} |" in page
    assert f"| It gains still. | not measured | - | {MISSING} |" in section(
        page, "What survives the strongest attacker"
    )
    assert "- The whole set." in section(page, "What we could not run")
    assert "Every check" not in page
    assert "results/" not in page.replace("docs/results/", "")


def test_a_page_says_what_holds_and_why_the_rest_does_not(paper, done):
    page = paper_page(paper, read_result(done.model_dump_json(), paper))
    assert "**1 holds, 2 do not, 1 not measured, of 4.**" in page
    assert "| It gains. | 0.9 (Table 1) | 0.5 (0.25 to 0.75) | holds |" in page
    assert "| It gains still. | not measured | -1 | does not hold |" in page
    every = section(page, "Every check")
    assert every.index("| Strongest, one | -1 | above 0 | does not hold |") < every.index("| Gain, one |")
    assert "- *Strongest, one*: The attack adds messages up. A bound on all of them holds." in every
    assert f"- *Other*: {NO_REASON}" in every
    assert "| Gap | - | above 0 | not measured |" in every
    assert "- *Gap*" not in every
    assert "Noise hides \\*labels\\*." in page


def test_tables_stand_beside_the_published_numbers_with_their_picture(paper, done):
    tables = section(paper_page(paper, done), "Tables and charts")
    assert "| defence | auc | auc, published |" in tables
    assert "| none | 0.900 | 0.800 |" in tables
    assert r"| a\|b | 0.500 | - |" in tables
    assert "(some-paper/leak.svg)" in tables
    assert "- Published: It is less. (Fig. 1)" in tables
    assert "Nothing was measured for this table." in tables
    assert list(pictures(done)) == ["leak"]
    assert pictures(done)["leak"].startswith("<svg xmlns=")


def test_a_long_table_is_left_to_the_file(paper, done):
    rows = [{"defence": str(number), "auc": 0.5} for number in range(99)]
    page = paper_page(paper, done.model_copy(update={"tables": {"leak": rows}}))
    assert "The table has 99 rows: they are in the result file." in page
    assert "[some-paper.json](../results/some-paper.json)" in page


@pytest.mark.parametrize("change", [{"scale": "smoke"}, {"steps": 1}, {"paper": "other"}])
def test_only_a_whole_run_at_this_scale_is_shown(paper, done, change):
    with pytest.raises(InvalidValue, match="The result of some-paper must be that of a whole run at the scale `small`"):
        read_result(done.model_copy(update=change).model_dump_json(), paper)


def test_the_table_of_all_claims_has_those_without_a_run_too(paper, done):
    table = claims_table({"one": done, "two": None}, {"one": paper, "two": paper})
    assert "| [one](papers/one.md) | It gains. | 0.9 (Table 1) | 0.5 (0.25 to 0.75) | holds |" in table
    assert f"| [two](papers/two.md) | It gains. | 0.9 (Table 1) | - | {MISSING} |" in table


def test_several_checks_show_their_ends(paper, done):
    both = done.model_copy(update={"checks": (GAIN, GAIN.model_copy(update={"name": "Gain, two", "value": 0.125}))})
    assert "| 0.125 to 0.5, 2 checks | holds |" in claims_table({"one": both}, {"one": paper})


def test_marks_are_escaped_but_not_in_code():
    assert mark("a*b_c|d <e> [f](g) `a_b`\nend") == r"a\*b\_c\|d \<e\> \[f\](g) `a_b` end"
