"""Numbers: the table of everything that was measured, and the cells that check the audit."""

from __future__ import annotations

import base64
import csv
import io
from collections.abc import Callable, Sequence
from typing import Any

from leaktight.core.display import points
from leaktight.core.metric import Reading, quantity_of
from leaktight.core.probe import OBJECTIVE, Attempt
from leaktight.core.record import Record, Status
from leaktight.findings.column import NOTHING, Column, format_reading
from leaktight.findings.display import STAGES, label_of, name_of, title_of
from leaktight.findings.flags_soundness import far_from_chance, is_exact
from leaktight.findings.kind import LeakKind, first_kind, leak_kinds
from leaktight.findings.layer_risk import of_layers, of_layers_alone
from leaktight.findings.rows import Row
from leaktight.findings.utility import utility_name, utility_text
from leaktight.report.page import Page, Section
from leaktight.report.sheet import scenario_names

LAST = "theorem_"
"""How the names of readings begin that stand last: they need the section about characteristics."""
FORMULAS = ("=", "+", "@", "\t")
"""How a text begins that a spreadsheet would take for a formula."""


def table_section(page: Page, judged: bool = True) -> Section | None:
    """Show one line for each defence, attack and setting, with every reading that is not about one layer.

    What was measured of single layers alone is left to the section about them.

    Args:
        page: what was measured.
        judged: whether the page holds a verdict, whose rows are marked.
    """
    rows = tuple(row for row in page.summary.tabled if not of_layers_alone(row))
    if not rows:
        return None
    # What comes beside examples is another number of the same row.
    judgements = [one for one in page.summary.judgements if judged and not one.kind.unjudged and not one.beside]
    decided = [judgement.worst for judgement in judgements]
    places = _places(page, rows)
    constant = [f"{column.title} {column.text(rows[0])}" for column in places if _is_constant(column, rows)]
    columns = [column for column in places if not _is_constant(column, rows)] + _columns(
        rows, bool(page.summary.curves)
    )
    heads = ["defence", "attack", *(column.title for column in columns)]
    lines = [
        {
            "cells": [name_of(row.defence), row.title, *(column.text(row) for column in columns)],
            "judged": any(row is one for one in decided),
        }
        for row in rows
    ]
    values = {
        "lines": lines,
        "heads": heads,
        "constant": constant,
        "bold": bool(decided),
        "csv": csv_address([heads, *(line["cells"] for line in lines)]),
        "notes": [note for kind in leak_kinds() if (note := kind.numbers_note(rows))],
        "layers": any(r.layer is not None and of_layers(r.name) for row in page.summary.rows for r in row.readings),
    }
    return Section("table", "Every number", "table.html", values)


def csv_address(lines: Sequence[Any]) -> str:
    """Return a table as a file that a link holds; what a spreadsheet would take for a formula is marked as text."""
    file = io.StringIO()
    writer = csv.writer(file)
    for line in lines:
        writer.writerow([f"'{cell}" if str(cell).startswith(FORMULAS) else cell for cell in line])
    return f"data:text/csv;charset=utf-8;base64,{base64.b64encode(file.getvalue().encode()).decode()}"


def _places(page: Page, rows: Sequence[Row]) -> list[Column]:
    """Return where each row was measured; what all rows share stands above the table."""
    names = scenario_names(page)
    several = len({row.scenario for row in rows}) > 1
    return [
        *([Column("scenario", lambda row: f"{row.scenario} ({names.get(row.scenario, '')})")] if several else []),
        Column("batch", lambda row: str(row.batch_size)),
        Column("when", lambda row: STAGES.get(row.stage, row.stage)),
    ]


def _is_constant(column: Column, rows: Sequence[Row]) -> bool:
    return len({column.text(row) for row in rows}) == 1


def _columns(rows: tuple[Row, ...], theorem: bool) -> list[Column]:
    """Return the columns that at least one row fills: what decides first, then the kinds of leak, then the rest.

    Args:
        rows: what was measured.
        theorem: whether the page has the section about characteristics, without which those of its theorem say nothing.
    """
    utilities = dict.fromkeys(utility_name(row.utility) for row in rows if row.utility is not None)
    known = [
        Column("judged by", _say_reading),
        *(column for kind in leak_kinds() for column in kind.numbers(rows)),
        *(column for name in utilities for column in _of_utility(name)),
        Column("privacy budget", lambda row: "; ".join(map(str, row.budgets)) or NOTHING),
    ]
    named = {name for column in known for name in column.readings}
    others = dict.fromkeys(
        r.name for row in rows for r in row.readings if r.name not in named and r.layer is None and r != row.utility
    )
    shown_last = [name for name in others if _is_last(name) and theorem]
    more = [
        Column(quantity_of(name).heading, _other(name))
        for name in (*(name for name in others if not _is_last(name)), *shown_last)
    ]
    last = [
        Column("seeds", lambda row: str(len(row.seeds))),
        Column("cells", lambda row: ", ".join(f"{count} {status.value}" for status, count in row.counts.items())),
    ]
    return [column for column in known + more if any(column.text(row) != NOTHING for row in rows)] + last


def _is_last(name: str) -> bool:
    return name.startswith(LAST)


def _say_reading(row: Row) -> str:
    """Return what a row is judged by, whichever kind of leak it is about, with its name."""
    kind = first_kind(row)
    return NOTHING if kind is None else kind.say_reading(row)


def _of_utility(name: str) -> list[Column]:
    """Return the columns of one way to say how good a model is, for the rows whose training said it so."""

    def own(row: Row) -> bool:
        return row.utility is not None and utility_name(row.utility) == name

    return [
        Column(name, lambda row: _use(row.utility if own(row) else None)),
        Column(f"{name} lost (points)", lambda row: format_reading(row.loss if own(row) else None, points)),
    ]


def _use(utility: Reading | None) -> str:
    return format_reading(
        utility, lambda value: utility_text(Reading(name=utility.name, value=value)) if utility else NOTHING
    )


def _other(name: str) -> Callable[[Row], str]:
    number = quantity_of(name).number
    return lambda row: format_reading(row.reading(name), number)


def checks_section(page: Page) -> Section:
    """Show the cells whose answer is known: controls must be exact, null views must be at chance."""
    checks = [_check(record) for record in page.records if record.cell.purpose == "control" or _is_null(record)]
    controls = [_control_kind(record) for record in page.records if record.cell.purpose == "control"]
    kinds = [kind for kind in leak_kinds() if kind in (controls or [_control_kind(None)])]
    values = {"checks": checks, "controls": [kind.control for kind in kinds if kind.control]}
    return Section("checks", "Checks of the instruments", "checks.html", values)


def _control_kind(record: Record | None) -> LeakKind:
    """Return the kind of leak whose answer a control cell knows; of one that did not get so far, the first."""
    kinds = leak_kinds()
    return next((kind for kind in kinds if record is not None and kind.is_exact(record) is not None), kinds[0])


def _is_null(record: Record) -> bool:
    """Return whether a record is of an attack on noise; what needs no attack may look at public examples alone."""
    return record.cell.purpose == "null" and isinstance(record.cell.probe, Attempt)


def _check(record: Record) -> dict[str, object]:
    control = record.cell.purpose == "control"
    leaks = [reading for reading in record.readings if reading.leaks is not None and reading.against != "used"]
    # What the attacks of several reached by themselves is checked, and not told.
    found = [_say_check(reading, control) for reading in leaks if not reading.by]
    done = record.status is Status.DONE
    left = record.reading(OBJECTIVE)
    if left is not None and not leaks:
        found = [
            f"left with {left.value:.3g} of its objective on noise: what an attack that explains nothing is left with"
        ]
    if control:
        result, tone = ("passed", "passed") if is_exact(record) else ("not passed", "leaks")
    elif done and not any(reading.chance is not None for reading in leaks):
        # Where nothing was compared with chance, nothing was passed.
        result, tone = "not graded", "unknown"
    else:
        passed = done and not any(map(far_from_chance, record.readings))
        result, tone = ("passed", "passed") if passed else ("not passed", "leaks")
    return {
        "kind": "control: the answer is known" if control else "null: only noise was sent",
        "name": label_of(record.cell),
        "seed": record.cell.seed,
        "found": "; ".join(found) if done else f"{record.status.value}: {record.reason}",
        "result": result,
        "tone": tone,
    }


def _say_check(reading: Reading, control: bool) -> str:
    """Say what a check read, on noise beside what guessing gets."""
    quantity = quantity_of(reading.name)
    where = f" of {reading.layer}" if reading.layer else ""
    unit = f" {quantity.unit}" if quantity.unit not in ("", "%") else ""
    chance = "" if control or reading.chance is None else f" (chance {quantity.number(reading.chance)}{unit})"
    return f"{title_of(reading.name)}{where} {quantity.number(reading.value)}{unit}{chance}"
