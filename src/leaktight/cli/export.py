"""`leaktight export`: an audit's records for other programs, without a private pixel."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

if TYPE_CHECKING:
    from leaktight.core.record import Record

COLUMNS = (
    "key", "purpose", "scenario", "defence", "probe", "threat", "stage", "batch_size", "victims", "seed", "status",
    "reason", "seconds", "privacy_budget", "reading", "against", "layer", "by", "value", "low", "high", "n", "chance",
    "leaks",
)  # fmt: skip

EXAMPLES = """
\b
Examples:
  leaktight export leaktight-audit --format csv --out readings.csv
  leaktight export leaktight-audit --redact --out to-pass-on.jsonl
  leaktight export leaktight-audit | jq .status
  leaktight export --format schema --out summary.schema.json
  leaktight export leaktight-audit --format summary | jq -r '.verdicts[] | .defence.kind + ": " + .verdict'
"""


def export(
    folder: Annotated[
        Path | None, typer.Argument(help="The audit's folder.", metavar="DIR", show_default=False)
    ] = None,
    format: Annotated[
        Literal["jsonl", "csv", "summary", "schema"],
        typer.Option(help="One record a line, one reading a row, the verdicts, or the schema of these."),
    ] = "jsonl",
    out: Annotated[Path | None, typer.Option(help="The file to write.", show_default="standard output")] = None,
    redact: Annotated[
        bool,
        typer.Option(
            "--redact", help="Leave out values of single images, seeds, error texts and paths, to pass it on."
        ),
    ] = False,
) -> None:
    """Write an audit's records: settings and readings, never an image."""
    from leaktight.core.errors import InvalidValue
    from leaktight.core.private import write_private
    from leaktight.findings.redaction import redact_records, without_outcomes
    from leaktight.findings.summary_file import SCHEMA_FILE, as_text, summary_of
    from leaktight.running.store import Store

    if format == "schema":
        text = SCHEMA_FILE.read_text(encoding="utf-8")
    elif folder is None:
        raise InvalidValue("The audit's folder is missing. Name the one that `leaktight audit --out` wrote to.")
    else:
        with Store.read(folder) as store:
            records, plan, versions, missing = store.records(), store.plan(), store.versions(), store.missing()
        shown = redact_records(records) if redact else without_outcomes(records)
        if format == "summary":
            text = as_text(summary_of(records, plan, versions, redact, missing=missing))
        else:
            text = as_csv(shown, redact) if format == "csv" else as_lines(shown, redact)
    if out is None:
        typer.echo(text, nl=False)
    else:
        write_private(out, text.encode())


def as_lines(records: Sequence[Record], redact: bool = False) -> str:
    """Return each record as one line of JSON, an epsilon with what it means; redacted, without places on the disk."""
    from leaktight.core.budget import budgets_of
    from leaktight.findings.redaction import without_places

    def line(record: Record) -> str:
        budgets = list(map(str, budgets_of(record.notes)))
        settings = without_places(record) if redact else record.to_dict()
        return json.dumps({**settings, "privacy_budget": budgets} if budgets else settings)

    return "".join(f"{line(record)}\n" for record in records)


def as_csv(records: Sequence[Record], redact: bool = False) -> str:
    """Return each reading as one row; a cell without readings has one row too, which says why.

    Redacted, defences are named as reports name them, without places on the disk.
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    scenarios = list(dict.fromkeys(record.cell.scenario.key for record in records))
    for record in records:
        writer.writerows(_rows(record, scenarios.index(record.cell.scenario.key) + 1, redact))
    return text.getvalue()


def _rows(record: Record, scenario: int, redact: bool) -> Iterator[dict[str, Any]]:
    from leaktight.core.budget import budgets_of
    from leaktight.findings.display import label_of, name_of
    from leaktight.findings.threats import letter_of_probe

    cell, letter = record.cell, letter_of_probe(record.cell.probe)
    common = {
        "key": cell.key,
        "purpose": cell.purpose,
        "scenario": scenario,
        "defence": name_of(cell.defence) if redact else str(cell.defence),
        "probe": label_of(cell),
        "threat": "" if letter is None else letter.letter,
        "stage": cell.stage,
        "batch_size": cell.batch_size,
        "victims": cell.victims,
        "seed": cell.seed,
        "status": record.status.value,
        "reason": record.reason,
        "seconds": round(record.seconds, 3),
        "privacy_budget": "; ".join(map(str, budgets_of(record.notes))),
    }
    if not record.readings:
        yield common
    for reading in record.readings:
        yield {
            **common,
            "reading": reading.name,
            **{name: getattr(reading, name) for name in COLUMNS[COLUMNS.index("against") :]},
        }
