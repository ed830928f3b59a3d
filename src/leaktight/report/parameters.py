"""Parameters: who attacks and what they know, every parameter of every cell, and how to run it again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from leaktight.attacks.presets import PRESETS
from leaktight.captures import AsCaptured
from leaktight.core.attack import Attack
from leaktight.core.budget import budgets_of, other_notes
from leaktight.core.defence import Defence, is_undefended, links
from leaktight.core.display import capital, join_words
from leaktight.core.probe import Attempt, Probe, attack_of
from leaktight.core.record import Cell
from leaktight.core.scenario import Scenario
from leaktight.core.threat import Knows, ThreatModel
from leaktight.core.value import Value
from leaktight.findings.adaptation import models_defence
from leaktight.findings.display import family_of, gist, label_of, name_of
from leaktight.findings.redaction import without_places
from leaktight.findings.threats import SOURCE, letter_of_probe, name_of_seat
from leaktight.report.page import Page, Section
from leaktight.report.sheet import scenario_name

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
    "server": "it follows the protocol and reads every message that is sent to it",
    "feature-party": "it follows the protocol, has no labels, and reads the gradients sent to it for its own examples",
    "label-party": "it follows the protocol and reads the activations that it is sent",
    "wire": "it changes nothing and reads every message that anyone sends",
}
"""What whoever sits there does; a participant does what `PARTICIPANT` says."""
PARTICIPANT = "it takes part and reads the messages of its own exchange"


def threat_section(page: Page) -> Section:
    """Say in words where each attack sits, what it knows and what it wants."""
    groups: dict[tuple[str, bool], dict[str, Any]] = {}
    for record in page.records:
        probe = record.cell.probe
        if isinstance(probe, Attempt) and record.cell.purpose == "measure":
            active = probe.attack.active
            group = groups.setdefault(
                (probe.threat.key, active),
                {"words": in_words(probe.threat, knowable(page), active), "letters": {}, "attacks": {}},
            )
            group["letters"] |= {str(letter): None} if (letter := letter_of_probe(probe)) else {}
            group["attacks"].setdefault(label_of(record.cell), _attack(probe, [r.cell.defence for r in page.records]))
    values = {"threats": list(groups.values()), "source": SOURCE, "open": open_by_design(page)}
    return Section("threat", "Who attacks, and what they know", "threat.html", values)


def open_by_design(page: Page) -> dict[str, tuple[str, ...]]:
    """Return for each defence of an audit what it leaves open by design, whatever was measured here."""
    used = {link.kind: link for record in page.records for link in links(record.cell.defence)}
    return {capital(type(link).title or kind): link.leaves_open for kind, link in used.items() if link.leaves_open}


def knowable(page: Page) -> frozenset[Knows]:
    """Return what an attacker of this audit could know: what the audit has not, nobody can be denied."""
    probes = [record.cell.probe for record in page.records]
    granted = {known for probe in probes if isinstance(probe, Attempt) for known in probe.threat.knows}
    parts: list[Scenario | Defence] = [record.cell.scenario for record in page.records]
    parts += [link for record in page.records for link in links(record.cell.defence)]
    usual = {Knows.LABELS, Knows.DEFENCE, Knows.AUXILIARY}
    known = frozenset(granted | usual).union(*(part.knowable for part in parts))
    return known if any(_is_declared(record.cell.defence) for record in page.records) else known - {Knows.DEFENCE}


def _is_declared(defence: Defence) -> bool:
    """Return whether anybody says that this is a defence: what senders of captured messages did, nobody says."""
    return not is_undefended(defence) and not isinstance(defence, AsCaptured)


def in_words(threat: ThreatModel, known: frozenset[Knows] = frozenset(Knows), active: bool = False) -> dict[str, Any]:
    """Return a threat model as words: the seat, what is known there, and what is not.

    Args:
        threat: where the attacker sits, and what it is granted.
        known: what there is to know.
        active: whether the attacker takes part in the training: it then plays the defence itself.

    Example:
        >>> in_words(ThreatModel(seat="client-2", knows=frozenset()))["seat"]
        'the participant client-2: it takes part and reads the messages of its own exchange'
    """
    granted = threat.knows | ({Knows.DEFENCE} if active else frozenset())
    return {
        "seat": f"{name_of_seat(threat.seat)}: {SEATS.get(threat.seat, PARTICIPANT)}",
        "knows": [ALWAYS, *(words for one, words in KNOWN.items() if one in granted & known)],
        "withheld": [words for one, words in KNOWN.items() if one in known - granted],
    }


def _attack(probe: Probe, defences: Sequence[Defence]) -> dict[str, Any]:
    """Return what an attack is and its goals, and which of these defences it models."""
    attack = attack_of(probe)
    if attack is None:
        return {"gist": gist(probe), "goals": [], "models": "", "defended": False, "changed": ""}
    goals = [*attack.goals, *([f"here {attack.aim}"] if attack.aim else [])]
    models = dict.fromkeys(
        family_of(one) for one in defences if not is_undefended(one) and models_defence(attack, probe, one)
    )
    models_words = join_words(list(models))
    defended = any(map(_is_declared, defences))
    return {
        "gist": gist(attack),
        "goals": goals,
        "models": models_words,
        "defended": defended,
        "changed": changed_settings(attack),
    }


def changed_settings(attack: Attack) -> str:
    """Say in which settings an attack differs from the preset whose name it has; nothing if it is none, or the same.

    Example:
        >>> from leaktight.attacks.presets import preset
        >>> changed_settings(preset("dlg2019", iterations=10))
        'iterations 10 in place of 300'
    """
    name = str(attack.to_dict().get("preset", ""))
    if not name.endswith("*") or name.removesuffix("*") not in PRESETS:
        return ""
    own = dict(lines_of(attack.to_dict()))
    usual = dict(lines_of(PRESETS[name.removesuffix("*")].to_dict()))
    changed = [key for key in own if key != "preset" and own[key] != usual.get(key)]
    return "; ".join(f"{key.replace('_', ' ')} {own[key]} in place of {usual.get(key, 'none')}" for key in changed)


def parameters_section(page: Page) -> Section:
    """Show every setting: each scenario, defence and probe once, and each cell with which of them it used."""
    cells = sorted((record.cell for record in page.records), key=lambda cell: cell.purpose != "measure")
    names = {scenario.key: scenario_name(name, scenario) for name, scenario in page.plan.scenarios.items()}
    groups = {
        "Scenarios": _number(
            (cell.scenario, f"{names.get(cell.scenario.key, cell.scenario.kind)}{_purpose(cell)}") for cell in cells
        ),
        "Defences": _number((cell.defence, name_of(cell.defence)) for cell in cells),
        "Attacks and measures": _number((cell.probe, f"{label_of(cell)}{_purpose(cell)}") for cell in cells),
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
            "label": label_of(record.cell),
            "status": record.status.value,
            "seconds": record.seconds,
            "reason": record.reason,
            "notes": ", ".join(_notes(record.notes)),
        }
        for record in page.records
    ]
    values = {"groups": shown, "lines": lines}
    return Section("parameters", "Every parameter", "parameters.html", values, appendix=True)


def _purpose(cell: Cell) -> str:
    """Say what a setting is for, where it is not for what the audit measures."""
    return "" if cell.purpose == "measure" else f" (for {cell.purpose} cells)"


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
