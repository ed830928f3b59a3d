"""Settings: who attacks and what they know, every parameter of every cell, and how to run it again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from leaktight.core.budget import budgets_of, other_notes
from leaktight.core.defence import Defence, is_undefended
from leaktight.core.display import join_words
from leaktight.core.probe import Attempt, Probe, attack_of
from leaktight.core.threat import Knows, ThreatModel
from leaktight.core.value import Value
from leaktight.findings.adaptation import models_defence
from leaktight.findings.display import family_of, gist, label_of, name_of
from leaktight.findings.redaction import without_places
from leaktight.findings.threats import SOURCE, letter_of_probe
from leaktight.report.page import Page, Section

KNOWN = {
    Knows.LABELS: "the true labels behind each message",
    Knows.DEFENCE: "which defence is in use, and its settings",
    Knows.AUXILIARY: "public data of the same kind",
    Knows.LOCAL_STEPS: "how many local steps are behind an update, and how they are taken",
    Knows.HINTS: "the true labels of a few examples behind each message",
    Knows.KEYS: "the class keys of the other participants",
}
ALWAYS = "how many examples are behind each message"
SEATS = {
    "server": "the server: it follows the protocol and reads every message that is sent to it",
    "feature-party": "the feature party: it follows the protocol, has no labels, and reads the gradients that it gets "
    "for its own examples",
    "label-party": "the label party: it follows the protocol and reads the activations that it is sent",
    "wire": "someone on the wire: it changes nothing and reads every message that anyone sends",
}
WANTS = {
    "inputs": "rebuild the examples",
    "labels": "read off the labels",
    "scores": "tell examples apart",
    "property": "tell a private property",
    "samples": "make pictures of a class that only others hold",
}


def threat_section(page: Page) -> Section:
    """Say in words where each attack sits, what it knows and what it wants."""
    groups: dict[str, dict[str, Any]] = {}
    for record in page.records:
        probe = record.cell.probe
        if isinstance(probe, Attempt) and record.cell.purpose == "measure":
            group = groups.setdefault(probe.threat.key, {"words": in_words(probe.threat), "letters": {}, "attacks": {}})
            group["letters"] |= {str(letter): None} if (letter := letter_of_probe(probe)) else {}
            group["attacks"].setdefault(label_of(record.cell), _attack(probe, [r.cell.defence for r in page.records]))
    values = {"threats": list(groups.values()), "source": SOURCE}
    return Section("threat", "Who attacks, and what they know", "threat.html", values)


def in_words(threat: ThreatModel) -> dict[str, Any]:
    """Return a threat model as words: the seat, what is known there, and what is not.

    Example:
        >>> in_words(ThreatModel(seat="client-2", knows=frozenset()))["seat"]
        'the participant client-2: it takes part and reads the messages of its own exchange'
    """
    other = f"the participant {threat.seat}: it takes part and reads the messages of its own exchange"
    return {
        "seat": SEATS.get(threat.seat, other),
        "knows": [ALWAYS, *(words for known, words in KNOWN.items() if known in threat.knows)],
        "withheld": [words for known, words in KNOWN.items() if known not in threat.knows],
    }


def _attack(probe: Probe, defences: Sequence[Defence]) -> dict[str, Any]:
    """Return what an attack is and wants, and which of these defences it models."""
    attack = attack_of(probe)
    if attack is None:
        return {"gist": gist(probe), "wants": [], "models": ""}
    wants = [words for claim, words in WANTS.items() if claim in attack.claims]
    models = dict.fromkeys(
        family_of(one) for one in defences if not is_undefended(one) and models_defence(attack, probe, one)
    )
    return {"gist": gist(attack), "wants": wants, "models": join_words(list(models))}


def parameters_section(page: Page) -> Section:
    """Show every setting: each scenario, defence and probe once, and each cell with which of them it used."""
    cells = [record.cell for record in page.records]
    groups = {
        "Scenarios": _number((cell.scenario, cell.scenario.kind) for cell in cells),
        "Defences": _number((cell.defence, name_of(cell.defence)) for cell in cells),
        "Attacks and measures": _number((cell.probe, label_of(cell)) for cell in cells),
    }
    letters = dict(zip(groups, "SDA", strict=True))
    shown = {
        title: [
            {"mark": f"{letters[title]}{number}", "name": name, "settings": lines_of(_settings_of(value, page.redact))}
            for value, name, number in values.values()
        ]
        for title, values in groups.items()
    }
    scenarios, defences, probes = groups.values()
    lines = [
        {
            "key": record.cell.key,
            "marks": [
                f"S{scenarios[record.cell.scenario.key][2]}",
                f"D{defences[record.cell.defence.key][2]}",
                f"A{probes[record.cell.probe.key][2]}",
            ],
            "cell": record.cell,
            "status": record.status.value,
            "seconds": record.seconds,
            "reason": record.reason,
            "notes": ", ".join(_notes(record.notes)),
        }
        for record in page.records
    ]
    return Section("parameters", "Every parameter", "parameters.html", {"groups": shown, "lines": lines})


def _notes(notes: Mapping[str, float]) -> list[str]:
    """Return notes as texts; an epsilon only together with all that belongs to it."""
    budgets = [f"{budget.defence}: {budget}" for budget in budgets_of(notes)]
    return [*budgets, *(f"{name} {value:.4g}" for name, value in other_notes(notes).items())]


def _settings_of(value: Value, redact: bool) -> dict[str, Any]:
    return without_places(value) if redact else value.to_dict()


def _number(values: Iterable[tuple[Value, str]]) -> dict[str, tuple[Value, str, int]]:
    found: dict[str, tuple[Value, str, int]] = {}
    for value, name in values:
        found.setdefault(value.key, (value, name, len(found) + 1))
    return found


def lines_of(settings: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Return nested settings as names, joined by dots, and texts.

    Example:
        >>> lines_of({"model": {"kind": "mlp"}, "rounds": 3})
        [('model.kind', 'mlp'), ('rounds', '3')]
    """
    out: list[tuple[str, str]] = []
    for name, value in settings.items():
        if isinstance(value, dict):
            out += lines_of(value, f"{prefix}{name}.")
        elif isinstance(value, list) and any(isinstance(inner, dict) for inner in value):
            out += lines_of({str(number): inner for number, inner in enumerate(value)}, f"{prefix}{name}.")
        else:
            out.append((f"{prefix}{name}", value if isinstance(value, str) else json.dumps(value)))
    return out


def reproduce_section(page: Page) -> Section:
    """Say with what this was made, and how to make it again."""
    seconds = sum(record.seconds for record in page.records)
    plan = _settings_of(page.plan, page.redact)
    if page.redact:
        plan["grid"]["seeds"] = "withheld"
    values = {
        "versions": dict(page.versions),
        "seeds": page.summary.seeds,
        "redact": page.redact,
        "plan": json.dumps(plan, indent=2, ensure_ascii=False),
        "cells": len(page.records),
        "minutes": seconds / 60,
    }
    return Section("reproduce", "How to make it again", "reproduce.html", values)
