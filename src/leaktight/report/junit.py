"""JUnit: what came of a gate, as the XML that build servers show."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from leaktight.findings.gate import Criterion, Gate

_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def as_junit(gate: Gate) -> str:
    """Return one suite for each criterion, and one test case for each thing that it looked at."""
    suites = ElementTree.Element("testsuites", name="leaktight gate")
    total = failures = 0
    for criterion in gate.criteria:
        suite, number, failed = _suite(criterion)
        suites.append(suite)
        total, failures = total + number, failures + failed
    suites.set("tests", str(total))
    suites.set("failures", str(failures))
    ElementTree.indent(suites)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(suites, encoding="unicode")}\n'


def _suite(criterion: Criterion) -> tuple[ElementTree.Element, int, int]:
    suite = ElementTree.Element("testsuite", name=f"leaktight {criterion.name}", errors="0", skipped="0", time="0")
    broken = criterion.faults
    for case in criterion.cases:
        test = ElementTree.SubElement(
            suite, "testcase", classname=f"leaktight.{criterion.name}", name=_clean(case.subject), time="0"
        )
        if case in broken:
            failure = ElementTree.SubElement(test, "failure", message=_clean(criterion.about), type=criterion.name)
            failure.text = _clean(case.message)
    suite.set("tests", str(len(criterion.cases)))
    suite.set("failures", str(len(broken)))
    return suite, len(criterion.cases), len(broken)


def _clean(text: str) -> str:
    """Return a text without what XML cannot hold."""
    return _FORBIDDEN.sub("?", text)
