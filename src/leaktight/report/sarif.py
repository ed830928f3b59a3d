"""SARIF: what came of a gate, in the format of static analysis (2.1.0), which code hosts show beside a change."""

from __future__ import annotations

import hashlib
import json
from typing import Any
from urllib.parse import quote

from leaktight import __version__
from leaktight.findings.gate import Gate

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
DOUBT = "doubt"
_DOUBT_ABOUT = "A reason to doubt the numbers of the audit."


def as_sarif(gate: Gate, place: str) -> str:
    """Return one result for each thing that breaks a criterion, and a note for each reason to doubt the audit.

    Args:
        gate: what came of the demands.
        place: the file that results point at, relative to the root of the project.
    """
    rules = {criterion.name: criterion.about for criterion in gate.criteria} | {DOUBT: _DOUBT_ABOUT}
    order = list(rules)
    broken = [
        _result(criterion.name, order, "error", f"{criterion.about} {case.message}", place, case.key)
        for criterion in gate.criteria
        for case in criterion.faults
    ]
    doubts = [
        _result(DOUBT, order, "note", flag.sentence, place, f"{DOUBT}/{flag.name}/{flag.sentence}")
        for flag in gate.summary.flags
        if flag.severity == DOUBT
    ]
    driver = {
        "name": "Leaktight",
        "version": __version__,
        "semanticVersion": __version__,
        "rules": [
            {"id": name, "shortDescription": {"text": about}, "fullDescription": {"text": about}}
            for name, about in rules.items()
        ],
    }
    run = {"tool": {"driver": driver}, "columnKind": "utf16CodeUnits", "results": [*broken, *doubts]}
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _result(rule: str, order: list[str], level: str, text: str, place: str, key: str) -> dict[str, Any]:
    physical = {"artifactLocation": {"uri": quote(place)}, "region": {"startLine": 1}}
    return {
        "ruleId": rule,
        "ruleIndex": order.index(rule),
        "level": level,
        "message": {"text": text},
        "locations": [{"physicalLocation": physical}],
        "partialFingerprints": {"leaktight/v1": hashlib.sha256(key.encode()).hexdigest()[:32]},
    }
