"""The summary file: the verdicts and readings of an audit for other programs, in the audit's folder."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from leaktight.core.defence import is_undefended
from leaktight.core.errors import InvalidValue
from leaktight.core.input_file import MEBIBYTE, read_input
from leaktight.core.metric import Reading, quantity_of
from leaktight.core.private import reason, write_private
from leaktight.core.record import Record, Status
from leaktight.findings.advice import advise
from leaktight.findings.display import name_of
from leaktight.findings.evidence import Tried
from leaktight.findings.flags import raise_flags
from leaktight.findings.redaction import number_seeds, redact_records, without_places
from leaktight.findings.rows import Row
from leaktight.findings.sentence import sentence_of
from leaktight.findings.summary import AuditSummary, summarise
from leaktight.findings.summary_form import (
    FORMAT,
    AdviceEntry,
    AttackEntry,
    CellCounts,
    FlagEntry,
    ReadingEntry,
    SummaryFile,
    VerdictEntry,
)
from leaktight.findings.utility import utility_name
from leaktight.findings.verdict import Judgement
from leaktight.plans.plan import Plan
from leaktight.running.store import STORE_FILE, Store

SUMMARY_FILE = "summary.json"
SCHEMA_FILE = Path(__file__).parent / "summary.schema.json"
"""The published schema of summaries."""
LARGEST_SUMMARY = 256 * MEBIBYTE


def write_summary(folder: Path, redact: bool = False, summary: AuditSummary | None = None) -> Path:
    """Write the summary of an audit's folder into it, for its owner alone (mode 0600), and return where it is.

    Args:
        folder: where the audit is stored.
        redact: whether to leave out what a redacted report leaves out.
        summary: that of all its records, if it is known already; a redacted one has a summary of its own.
    """
    with Store.read(folder) as store:
        found = summary_of(store.records(), store.plan(), store.versions(), redact, summary, store.missing())
    path = folder / SUMMARY_FILE
    write_private(path, as_text(found).encode())
    return path


def read_summary(place: Path) -> SummaryFile:
    """Return the summary of an audit to hold to demands: from its records if they are there, else from its file.

    What a gate says is passed on, and classes may be people: from records, classes have numbers in place of names.

    Args:
        place: the audit's folder, a folder with its summary file alone, or that file.

    Raises:
        InvalidValue: there is neither, or the file is no summary of this release.
    """
    if (place / STORE_FILE).is_file():
        with Store.read(place) as store:
            records = [record.model_copy(update={"class_names": ()}) for record in store.records()]
            return summary_of(records, store.plan(), store.versions(), missing=store.missing())
    path = place / SUMMARY_FILE if place.is_dir() else place
    try:
        document = json.loads(read_input(path, LARGEST_SUMMARY))
    except FileNotFoundError:
        raise InvalidValue(
            f"There is no audit in `{place}`. Name the folder that `leaktight audit --out` wrote to."
        ) from None
    except OSError as error:
        raise InvalidValue(f"The file `{path}` cannot be read: {reason(error)}.") from None
    # Also what is no text, and what is nested too deeply.
    except (ValueError, RecursionError):
        raise InvalidValue(f"The file `{path}` is not JSON. Name a `{SUMMARY_FILE}`, or an audit's folder.") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise InvalidValue(
            f"The file `{path}` is no summary of format {FORMAT}. Write it again with `leaktight export --format "
            "summary`."
        )
    try:
        return SummaryFile.model_validate(document)
    except InvalidValue as error:
        first = str(error).splitlines()[0]
        raise InvalidValue(
            f"The file `{path}` is not a summary as this release writes it: {first} Write it again with `leaktight "
            "export --format summary`."
        ) from None


def as_text(summary: SummaryFile) -> str:
    """Return a summary as JSON, each reading on a line of its own."""
    document = summary.to_dict()
    readings = document.pop("readings")
    text = json.dumps(document, indent=2, allow_nan=False).removesuffix("\n}")
    lines = ",\n".join(f"    {json.dumps(reading, allow_nan=False)}" for reading in readings)
    inside = f"\n{lines}\n  " if lines else ""
    return f'{text},\n  "readings": [{inside}]\n}}\n'


def summary_of(
    records: Sequence[Record],
    plan: Plan,
    versions: Mapping[str, str],
    redact: bool = False,
    summary: AuditSummary | None = None,
    missing: int = 0,
) -> SummaryFile:
    """Return the verdicts, flags, advice and readings of an audit.

    There are no images, seeds, places on the disk or values of single victims in it. Redacted, readings that rest on a
    single example are left out too.

    Args:
        records: what was measured.
        plan: what was to be measured; it names the scenarios.
        versions: what it was measured with.
        redact: whether it is to be passed on.
        summary: that of the records, if it is known already.
        missing: how many planned cells have no record.
    """
    numbers = number_seeds(record.cell.seed for record in records)
    shown = redact_records(records, numbers, pairs=True) if redact else tuple(records)
    summary = summarise(shown, records if redact else None) if summary is None or redact else summary
    names = scenario_names(shown, plan)
    judged = {judgement.defence.key for judgement in summary.judgements}
    counts = Counter(record.status for record in shown if record.cell.purpose == "measure")
    return SummaryFile(
        format=FORMAT,
        title=plan.title,
        verdicts=tuple(_verdict(judgement, names[judgement.scenario]) for judgement in summary.judgements),
        unmeasured=tuple(name_of(defence) for defence in plan.defences if defence.key not in judged),
        cells=CellCounts(missing=missing, **{status.value: counts.get(status, 0) for status in Status}),
        flags=tuple(
            FlagEntry(name=flag.name, severity=flag.severity, sentence=flag.sentence)
            for flag in raise_flags(shown, plan.caveats)
        ),
        advice=tuple(
            AdviceEntry(
                question=advice.question,
                sentence=advice.sentence,
                defence=None if advice.defence is None else without_places(advice.defence),
            )
            for advice in advise(summary)
        ),
        versions=dict(versions),
        readings=tuple(_readings(summary.rows, names)),
    )


def scenario_names(records: Sequence[Record], plan: Plan) -> dict[int, str]:
    """Return the plan's name of each scenario, by the number that rows give it."""
    keys = list(dict.fromkeys(record.cell.scenario.key for record in records if record.cell.purpose == "measure"))
    by_key = {scenario.key: name for name, scenario in plan.scenarios.items()}
    return {number: by_key.get(key, str(number)) for number, key in enumerate(keys, start=1)}


def _verdict(judgement: Judgement, scenario: str) -> VerdictEntry:
    worst, reading, bound = judgement.worst, judgement.reading, judgement.bound
    return VerdictEntry(
        scenario=scenario,
        defence=without_places(judgement.defence),
        defence_name=name_of(judgement.defence),
        undefended=is_undefended(judgement.defence),
        kind=judgement.kind.kind,
        verdict=judgement.status,
        evidence=judgement.verdict,
        attack=worst.attack,
        figure=judgement.kind.short(worst),
        measure=judgement.kind.measure(worst),
        reading=None if reading is None else reading.name,
        **_numbers(reading),
        utility=utility_name(worst.loss or worst.utility),
        price=None if worst.loss is None else worst.loss.value,
        price_low=None if worst.loss is None else worst.loss.low,
        price_high=None if worst.loss is None else worst.loss.high,
        attacks=tuple(map(_attack, judgement.tried)),
        batch_size=worst.batch_size,
        stage=worst.stage,
        missing=judgement.missing or None,
        learned_nothing=worst.useless,
        epsilon=None if bound is None else bound.budget.epsilon,
        delta=None if bound is None else bound.budget.delta,
        largest_true_positive_rate=None if bound is None else bound.rate,
        sentence=sentence_of(judgement),
    )


def _numbers(reading: Reading | None) -> dict[str, Any]:
    fields = ("value", "low", "high", "chance", "n")
    return {field: None if reading is None else getattr(reading, field) for field in fields}


def _attack(tried: Tried) -> AttackEntry:
    failed = tried.kind.failures(tried.row)
    return AttackEntry(
        name=tried.name,
        principle=tried.kind.principle(tried.row),
        adapts=tried.row.adaptive,
        reads_undefended=tried.reads_undefended,
        search_failed=tried.search_failed,
        failed_searches=None if failed is None else failed.value,
    )


def _readings(rows: Sequence[Row], names: Mapping[int, str]) -> Iterator[ReadingEntry]:
    """Return every reading of every row: of the attack itself, then of each attack that was tried along with it."""
    units: dict[str, str] = {}
    for row in rows:
        place = {
            "scenario": names[row.scenario],
            "defence": without_places(row.defence),
            "defence_name": name_of(row.defence),
            "attack": row.attack,
            "batch_size": row.batch_size,
            "stage": row.stage,
        }
        for reading in (*row.readings, *row.members):
            if reading.name not in units:
                units[reading.name] = quantity_of(reading.name).unit
            yield ReadingEntry(
                **place,
                by=reading.by,
                reading=reading.name,
                against=reading.against,
                layer=reading.layer,
                unit=units[reading.name],
                leaks=reading.leaks,
                **_numbers(reading),
            )
