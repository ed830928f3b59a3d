"""The summary file: the verdicts of an audit for other programs, in the audit's folder."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from leaktight.core.metric import Reading
from leaktight.core.private import write_private
from leaktight.core.record import Record
from leaktight.findings.advice import advise
from leaktight.findings.evidence import Tried
from leaktight.findings.flags import raise_flags
from leaktight.findings.redaction import number_seeds, redact_records, without_places
from leaktight.findings.sentence import sentence_of
from leaktight.findings.summary import Summary, summarise
from leaktight.findings.verdict import Judgement
from leaktight.plans.plan import Plan
from leaktight.running.store import Store

SUMMARY_FILE = "summary.json"


def write_summary(folder: Path, redact: bool = False, summary: Summary | None = None) -> Path:
    """Write the summary of an audit's folder into it, for its owner alone (mode 0600), and return where it is.

    Args:
        folder: where the audit is stored.
        redact: whether to leave out what a redacted report leaves out.
        summary: that of all its records, if it is known already; a redacted one has a summary of its own.
    """
    with Store.read(folder) as store:
        found = summary_of(store.records(), store.plan(), store.versions(), redact, summary)
    path = folder / SUMMARY_FILE
    write_private(path, as_text(found).encode())
    return path


def as_text(summary: Mapping[str, Any]) -> str:
    """Return a summary as JSON."""
    return json.dumps(summary, indent=2, allow_nan=False) + "\n"


def summary_of(
    records: Sequence[Record],
    plan: Plan,
    versions: Mapping[str, str],
    redact: bool = False,
    summary: Summary | None = None,
) -> dict[str, Any]:
    """Return the verdicts, flags and advice of an audit as plain JSON types.

    There are no images, seeds, places on the disk or values of single victims in it. Redacted, readings that rest on a
    single example are left out too.

    Args:
        records: what was measured.
        plan: what was to be measured; it names the scenarios.
        versions: what it was measured with.
        redact: whether it is to be passed on.
        summary: that of the records, if it is known already.
    """
    numbers = number_seeds(record.cell.seed for record in records)
    shown = redact_records(records, numbers, pairs=True) if redact else tuple(records)
    summary = summarise(shown, records if redact else None) if summary is None or redact else summary
    keys = list(dict.fromkeys(record.cell.scenario.key for record in shown if record.cell.purpose == "measure"))
    by_key = {scenario.key: name for name, scenario in plan.scenarios.items()}
    names = {number: by_key.get(key, str(number)) for number, key in enumerate(keys, start=1)}
    return {
        "verdicts": [_verdict(judgement, names[judgement.scenario]) for judgement in summary.judgements],
        "flags": [
            {"name": flag.name, "severity": flag.severity, "sentence": flag.sentence} for flag in raise_flags(shown)
        ],
        "advice": [
            {
                "question": advice.question,
                "sentence": advice.sentence,
                "defence": None if advice.defence is None else without_places(advice.defence),
            }
            for advice in advise(summary)
        ],
        "versions": dict(versions),
    }


def _verdict(judgement: Judgement, scenario: str) -> dict[str, Any]:
    worst, reading, bound = judgement.worst, judgement.reading, judgement.bound
    return {
        "scenario": scenario,
        "defence": without_places(judgement.defence),
        "kind": judgement.kind.kind,
        "verdict": judgement.verdict,
        "attack": worst.attack,
        "reading": None if reading is None else reading.name,
        **_numbers(reading),
        "price": None if worst.loss is None else worst.loss.value,
        "price_low": None if worst.loss is None else worst.loss.low,
        "price_high": None if worst.loss is None else worst.loss.high,
        "attacks": [_attack(tried) for tried in judgement.tried],
        "batch_size": worst.batch_size,
        "stage": worst.stage,
        "missing": judgement.missing or None,
        "learned_nothing": worst.useless,
        "epsilon": None if bound is None else bound.budget.epsilon,
        "delta": None if bound is None else bound.budget.delta,
        "largest_true_positive_rate": None if bound is None else bound.rate,
        "sentence": sentence_of(judgement),
    }


def _numbers(reading: Reading | None) -> dict[str, Any]:
    fields = ("value", "low", "high", "chance", "n")
    return {field: None if reading is None else getattr(reading, field) for field in fields}


def _attack(tried: Tried) -> dict[str, Any]:
    failed = tried.kind.failures(tried.row)
    return {
        "name": tried.name,
        "principle": tried.kind.principle(tried.row),
        "adapts": tried.row.adaptive,
        "reads_undefended": tried.reads_undefended,
        "search_failed": tried.search_failed,
        "failed_searches": None if failed is None else failed.value,
    }
