"""SARIF files: what the standard asks of a log, and what code hosts ask of it beyond that."""

import json

import jsonschema
import pytest

from leaktight.defences import TopK
from leaktight.findings.gate import Demands, hold_to
from leaktight.findings.summary_file import summary_of
from leaktight.report.sarif import as_sarif

TEXT = {"type": "object", "required": ["text"], "properties": {"text": {"type": "string", "minLength": 1}}}
ESSENTIALS = {
    "$comment": "From the schema of SARIF 2.1.0: what is required, and the values that are allowed.",
    "type": "object",
    "required": ["version", "runs"],
    "properties": {
        "version": {"const": "2.1.0"},
        "runs": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["tool", "results"],
                "properties": {
                    "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                    "tool": {
                        "type": "object",
                        "required": ["driver"],
                        "properties": {
                            "driver": {
                                "type": "object",
                                "required": ["name"],
                                "properties": {
                                    "rules": {
                                        "type": "array",
                                        "uniqueItems": True,
                                        "items": {
                                            "type": "object",
                                            "required": ["id"],
                                            "properties": {"shortDescription": TEXT, "fullDescription": TEXT},
                                        },
                                    },
                                },
                            },
                        },
                    },
                    "results": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["message", "ruleId", "locations"],
                            "properties": {
                                "level": {"enum": ["none", "note", "warning", "error"]},
                                "message": TEXT,
                                "ruleIndex": {"type": "integer", "minimum": 0},
                                "partialFingerprints": {"additionalProperties": {"type": "string"}},
                                "locations": {
                                    "minItems": 1,
                                    "items": {
                                        "properties": {
                                            "physicalLocation": {
                                                "required": ["artifactLocation", "region"],
                                                "properties": {
                                                    "artifactLocation": {
                                                        "required": ["uri"],
                                                        "properties": {
                                                            "uri": {"type": "string", "format": "uri-reference"}
                                                        },
                                                    },
                                                    "region": {"properties": {"startLine": {"minimum": 1}}},
                                                },
                                            }
                                        }
                                    },
                                },
                            },
                        },
                    },
                },
            },
        },
    },
}


@pytest.fixture
def gate(made):
    records = [made.record(psnr=38), made.record(TopK(share=0.3), 31), made.record(TopK(share=0.2), 31)]
    return hold_to(summary_of(records, made.plan(), made.VERSIONS), Demands())


def test_it_has_the_form_of_the_standard(gate):
    found = json.loads(as_sarif(gate, "my plans/audit.toml"))
    jsonschema.validate(found, ESSENTIALS)
    [run] = found["runs"]
    errors = [result for result in run["results"] if result["level"] == "error"]
    assert [result["ruleId"] for result in errors] == ["leaks", "leaks"]
    rules = run["tool"]["driver"]["rules"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        [place] = result["locations"]
        assert place["physicalLocation"]["artifactLocation"]["uri"] == "my%20plans/audit.toml"
    assert errors[0]["message"]["text"].startswith("No defence may leak. Top-k (share 0.")


def test_a_doubt_is_a_note(gate):
    doubts = [flag.sentence for flag in gate.summary.flags if flag.severity == "doubt"]
    results = json.loads(as_sarif(gate, "audit.toml"))["runs"][0]["results"]
    assert [result["message"]["text"] for result in results if result["level"] == "note"] == doubts
    assert doubts


def test_a_finding_keeps_its_fingerprint_while_its_numbers_change(made, gate):
    worse = [made.record(psnr=38), made.record(TopK(share=0.3), 34), made.record(TopK(share=0.2), 35)]
    later = hold_to(summary_of(worse, made.plan(), made.VERSIONS), Demands())
    prints = [
        [
            result["partialFingerprints"]
            for result in json.loads(as_sarif(one, "a"))["runs"][0]["results"]
            if result["level"] == "error"
        ]
        for one in (gate, later)
    ]
    assert prints[0] == prints[1]
    assert prints[0][0] != prints[0][1]


def test_a_gate_that_passes_has_no_error(gate):
    results = json.loads(as_sarif(hold_to(gate.summary, Demands(leaks=None)), "a"))["runs"][0]["results"]
    assert not [result for result in results if result["level"] == "error"]
