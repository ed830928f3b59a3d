"""JUnit files: one test case for each thing a criterion looked at, and whole XML whatever the names are."""

from xml.etree import ElementTree

import pytest

from leaktight.defences import TopK
from leaktight.findings.gate import Case, Criterion, Demands, Gate, hold_to
from leaktight.findings.summary_file import summary_of
from leaktight.report.junit import as_junit


@pytest.fixture
def gate(made):
    records = [made.record(psnr=38), made.record(TopK(share=0.3), 31), made.record(TopK(share=0.2), 31)]
    return hold_to(summary_of(records, made.plan(), made.VERSIONS), Demands(accuracy_loss=2))


def test_each_broken_criterion_fails_its_cases(gate):
    root = ElementTree.fromstring(as_junit(gate))  # noqa: S314
    suites = {suite.get("name").removeprefix("leaktight "): suite for suite in root}
    assert list(suites) == [criterion.name for criterion in gate.criteria]
    leaks = suites["leaks"]
    assert (leaks.get("tests"), leaks.get("failures")) == ("2", "2")
    failure = leaks[0].find("failure")
    assert (failure.get("message"), failure.get("type")) == ("No defence may leak.", "leaks")
    assert failure.text.startswith("Top-k (share 0.")
    assert suites["refuted"].get("failures") == "0"
    assert root.get("failures") == str(sum(int(suite.get("failures")) for suite in root)) == "2"
    assert root.get("tests") == str(len(list(root.iter("testcase"))))


def test_what_is_allowed_does_not_fail(made, gate):
    relaxed = hold_to(gate.summary, Demands(leaks=2))
    assert ElementTree.fromstring(as_junit(relaxed)).get("failures") == "0"  # noqa: S314


def test_signs_that_xml_cannot_hold_are_replaced(gate):
    case = Case("a\x00b <&> \x1b[0m", True, "c\x0bd", "key")
    text = as_junit(Gate(gate.summary, (), (Criterion("leaks", "about", False, "found", (case,)),)))
    found = ElementTree.fromstring(text)  # noqa: S314
    assert found[0][0].get("name") == "a?b <&> ?[0m"
    assert found[0][0][0].text == "c?d"
