"""The summary for a pull request: tables that stay tables whatever the names are."""

import pytest

from leaktight.defences import TopK
from leaktight.findings.gate import Demands, hold_to
from leaktight.findings.summary_file import summary_of
from leaktight.report.gate_markdown import as_markdown


@pytest.fixture
def text(made):
    def make(records, **demands):
        plan = made.plan(title="A | <b>plan</b>\nof mine")
        return as_markdown(hold_to(summary_of(records, plan, made.VERSIONS), Demands(**demands)))

    return make


def test_it_says_what_failed_and_why(made, text):
    found = text([made.record(psnr=38), made.record(TopK(share=0.3), 31)])
    assert found.startswith("## Leaktight: failed\n\nA \\| \\<b\\>plan\\</b\\> of mine. Gate failed: leaks.")
    assert "| leaks | **failed** | 1 of 1 verdict, none allowed" in found
    assert "| top-k (share 0.3) | images | leaks | dlg2019 | all 8 images recognised | none seen (" in found
    assert "to doubt this audit</summary>" in found
    rows = [line for line in found.splitlines() if line.startswith("|")]
    assert {line.replace("\\|", "").count("|") for line in rows} == {4, 7}


def test_it_says_that_all_is_well(made, text):
    found = text(made.two_principles(TopK(share=0.05), accuracy=0.79))
    assert found.startswith("## Leaktight: passed\n")
    assert "**failed**" not in found
    assert "No attack that fails shows that none can succeed." in found


def test_an_empty_audit_has_no_verdicts(text):
    found = text([])
    assert "| measured | **failed** | Nothing was measured, so nothing can be said. |" in found
    assert "### Verdicts" not in found
