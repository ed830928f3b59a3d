"""Numbers: the table of everything that was measured, and the cells that check the audit."""

from __future__ import annotations

from collections.abc import Callable

from leaktight.core.display import points
from leaktight.core.metric import Reading, quantity_of
from leaktight.core.probe import Attempt
from leaktight.core.record import Record, Status
from leaktight.findings.column import NOTHING, Column, shown
from leaktight.findings.display import STAGES, label_of, name_of, title_of
from leaktight.findings.flags_soundness import far_from_chance, is_exact
from leaktight.findings.kind import LeakKind, leak_kinds
from leaktight.findings.layer_risk import of_layers, of_layers_alone
from leaktight.findings.rows import Row
from leaktight.findings.utility import utility_name, utility_text
from leaktight.report.page import Page, Section


def table_section(page: Page) -> Section | None:
    """Show one line for each defence, attack and setting, with every reading that is not about one layer.

    What was measured of single layers alone is left to the section about them.
    """
    rows = tuple(row for row in page.summary.rows if not of_layers_alone(row))
    if not rows:
        return None
    columns = _columns(rows)
    lines = [
        {
            "name": name_of(row.defence),
            "place": [row.attack, str(row.batch_size), STAGES[row.stage]],
            "cells": [(column.title, column.text(row)) for column in columns],
            "judged": any(row is (judgement.suite or judgement.worst) for judgement in page.summary.judgements),
        }
        for row in rows
    ]
    values = {
        "lines": lines,
        "columns": [column.title for column in columns],
        "notes": [note for kind in leak_kinds() if (note := kind.numbers_note(rows))],
        "layers": any(r.layer is not None and of_layers(r.name) for row in page.summary.rows for r in row.readings),
    }
    return Section("table", "Every number", "table.html", values)


def _columns(rows: tuple[Row, ...]) -> list[Column]:
    """Return the columns that at least one row fills: those of the kinds of leak first, then any other reading."""
    utilities = dict.fromkeys(utility_name(row.utility) for row in rows if row.utility is not None)
    known = [
        *([Column("scenario", lambda row: str(row.scenario))] if len({row.scenario for row in rows}) > 1 else []),
        *(column for kind in leak_kinds() for column in kind.numbers(rows)),
        *(column for name in utilities for column in _of_utility(name)),
        Column("privacy budget", lambda row: "; ".join(map(str, row.budgets)) or NOTHING),
    ]
    named = {name for column in known for name in column.readings}
    others = dict.fromkeys(
        r.name for row in rows for r in row.readings if r.name not in named and r.layer is None and r != row.utility
    )
    more = [Column(quantity_of(name).heading, _other(name)) for name in others]
    last = [
        Column("seeds", lambda row: str(len(row.seeds))),
        Column("cells", lambda row: ", ".join(f"{count} {status.value}" for status, count in row.counts.items())),
    ]
    return [column for column in known + more if any(column.text(row) != NOTHING for row in rows)] + last


def _of_utility(name: str) -> list[Column]:
    """Return the columns of one way to say how good a model is, for the rows whose training said it so."""

    def own(row: Row) -> bool:
        return row.utility is not None and utility_name(row.utility) == name

    return [
        Column(name, lambda row: _use(row.utility if own(row) else None)),
        Column(f"{name} lost (points)", lambda row: shown(row.loss if own(row) else None, points)),
    ]


def _use(utility: Reading | None) -> str:
    return shown(utility, lambda value: utility_text(Reading(name=utility.name, value=value)) if utility else NOTHING)


def _other(name: str) -> Callable[[Row], str]:
    number = quantity_of(name).number
    return lambda row: shown(row.reading(name), number)


def _significant(value: float) -> str:
    return f"{value:.3g}"


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
    found = [
        f"{title_of(r.name)}{f' of {r.layer}' if r.layer else ''} {_significant(r.value)}"
        + ("" if control or r.chance is None else f" (chance {_significant(r.chance)})")
        for r in record.readings
        if r.leaks is not None and r.against != "used"
    ]
    done = record.status is Status.DONE
    passed = is_exact(record) if control else done and not any(map(far_from_chance, record.readings))
    return {
        "kind": "control: the answer is known" if control else "null: only noise was sent",
        "name": label_of(record.cell),
        "seed": record.cell.seed,
        "found": "; ".join(found) if done else f"{record.status.value}: {record.reason}",
        "passed": passed,
    }
