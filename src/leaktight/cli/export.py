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
    "key", "purpose", "defence", "probe", "stage", "batch_size", "victims", "seed", "status", "reason", "seconds",
    "reading", "against", "layer", "value", "low", "high", "n", "chance", "leaks",
)  # fmt: skip

EXAMPLES = """
\b
Examples:
  leaktight export leaktight-audit --format csv --out readings.csv
  leaktight export leaktight-audit | jq .status
"""


def export(
    folder: Annotated[Path, typer.Argument(help="The audit's folder.", metavar="DIR", show_default=False)],
    format: Annotated[Literal["jsonl", "csv"], typer.Option(help="One record a line, or one reading a row.")] = "jsonl",
    out: Annotated[Path | None, typer.Option(help="The file to write.", show_default="standard output")] = None,
) -> None:
    """Write an audit's records: settings and readings, never an image."""
    from leaktight.audit.private import reason
    from leaktight.audit.store import Store
    from leaktight.core.errors import InvalidValue

    with Store.read(folder) as store:
        records = store.records()
    text = as_csv(records) if format == "csv" else as_lines(records)
    if out is None:
        typer.echo(text, nl=False)
        return
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InvalidValue(f"The file `{out}` cannot be written: {reason(error)}. Choose another one.") from error


def as_lines(records: Sequence[Record]) -> str:
    """Return each record as one line of JSON."""
    return "".join(f"{json.dumps(record.to_dict())}\n" for record in records)


def as_csv(records: Sequence[Record]) -> str:
    """Return each reading as one row; a cell without readings has one row too, which says why."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for record in records:
        writer.writerows(_rows(record))
    return text.getvalue()


def _rows(record: Record) -> Iterator[dict[str, Any]]:
    cell = record.cell
    common = {
        "key": cell.key,
        "purpose": cell.purpose,
        "defence": str(cell.defence),
        "probe": cell.label or str(cell.probe),
        "stage": cell.stage,
        "batch_size": cell.batch_size,
        "victims": cell.victims,
        "seed": cell.seed,
        "status": record.status.value,
        "reason": record.reason,
        "seconds": round(record.seconds, 3),
    }
    if not record.readings:
        yield common
    for reading in record.readings:
        yield {
            **common,
            "reading": reading.name,
            **{name: getattr(reading, name) for name in COLUMNS[COLUMNS.index("against") :]},
        }
