"""Numbers: the table of everything that was measured, and the cells that check the audit."""

from __future__ import annotations

from collections.abc import Callable

from leaktight.core.display import percent, points
from leaktight.core.metric import Reading, quantity_of
from leaktight.core.probe import Attempt
from leaktight.core.record import Record, Status
from leaktight.findings.display import STAGES, label_of, name_of, title_of
from leaktight.findings.flags_soundness import EXACT_AUC, EXACT_ERROR, EXACT_PSNR, far_from_chance, is_exact
from leaktight.findings.label_leak import LEAK_AUC, tells_labels
from leaktight.findings.layer_risk import of_layers, of_layers_alone
from leaktight.findings.property_leak import PROPERTY_AUC
from leaktight.findings.rows import LABELS, PSNR, SSIM, STATEMENT, Row
from leaktight.findings.utility import utility_name, utility_text
from leaktight.metrics.search_gap import SEARCH_FAILED
from leaktight.report.page import Page, Section

Show = Callable[[float], str]
_NONE = "-"


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
            "cells": [(title, text(row)) for title, text in columns],
            "judged": any(row is (judgement.suite or judgement.worst) for judgement in page.summary.judgements),
        }
        for row in rows
    ]
    values = {
        "lines": lines,
        "columns": [title for title, _ in columns],
        "changed": _changed(rows),
        "images": _images(rows),
        "labels": any(tells_labels(row.leak) for row in rows),
        "layers": any(r.layer is not None and of_layers(r.name) for row in page.summary.rows for r in row.readings),
    }
    return Section("table", "Every number", "table.html", values)


def _columns(rows: tuple[Row, ...]) -> list[tuple[str, Callable[[Row], str]]]:
    """Return the columns that at least one row fills, known readings first, then any other."""
    utilities = dict.fromkeys(utility_name(row.utility) for row in rows if row.utility is not None)
    known: list[tuple[str, Callable[[Row], str]]] = [
        ("scenario", lambda row: str(row.scenario)),
        ("images recognised", lambda row: shown(row.recognised, percent)),
        ("PSNR, raw (dB)", lambda row: shown(row.reading(PSNR, "raw"), quantity_of(PSNR).number)),
        ("PSNR, used (dB)", lambda row: shown(row.reading(PSNR, "used"), quantity_of(PSNR).number)),
        ("SSIM", lambda row: shown(row.reading(SSIM, "raw"), quantity_of(SSIM).number)),
        ("searches that failed", lambda row: row.searches or _NONE),
        ("labels read", lambda row: shown(_hits(row.reading(LABELS)), percent)),
        ("property AUC", lambda row: shown(row.reading(PROPERTY_AUC), quantity_of(PROPERTY_AUC).number)),
        *(column for name in utilities for column in _of_utility(name)),
        ("privacy budget", lambda row: "; ".join(map(str, row.budgets)) or _NONE),
    ]
    named = {STATEMENT, PSNR, SSIM, LABELS, PROPERTY_AUC, SEARCH_FAILED}
    others = dict.fromkeys(
        r.name for row in rows for r in row.readings if r.name not in named and r.layer is None and r != row.utility
    )
    more = [(quantity_of(name).heading, _other(name)) for name in others]
    last: list[tuple[str, Callable[[Row], str]]] = [
        ("seeds", lambda row: str(len(row.seeds))),
        ("cells", lambda row: ", ".join(f"{count} {status.value}" for status, count in row.counts.items())),
    ]
    several = len({row.scenario for row in rows}) > 1
    idle = set() if several else {"scenario"}
    idle |= set() if _changed(rows) else {"PSNR, used (dB)"}
    found = [c for c in known + more if c[0] not in idle and any(c[1](row) != _NONE for row in rows)]
    return found + last


def _images(rows: tuple[Row, ...]) -> bool:
    """Return whether images were rebuilt at all."""
    return any(row.reading(PSNR) is not None for row in rows)


def _changed(rows: tuple[Row, ...]) -> bool:
    """Return whether any defence changed the images before training saw them."""
    pairs = [(row.reading(PSNR, "raw"), row.reading(PSNR, "used")) for row in rows]
    return any(raw is not None and used is not None and raw.value != used.value for raw, used in pairs)


def _of_utility(name: str) -> list[tuple[str, Callable[[Row], str]]]:
    """Return the columns of one way to say how good a model is, for the rows whose training said it so."""

    def own(row: Row) -> bool:
        return row.utility is not None and utility_name(row.utility) == name

    return [
        (name, lambda row: _use(row.utility if own(row) else None)),
        (f"{name} lost (points)", lambda row: shown(row.loss if own(row) else None, points)),
    ]


def _use(utility: Reading | None) -> str:
    return shown(utility, lambda value: utility_text(Reading(name=utility.name, value=value)) if utility else _NONE)


def _other(name: str) -> Callable[[Row], str]:
    number = quantity_of(name).number
    return lambda row: shown(row.reading(name), number)


def shown(reading: Reading | None, number: Show) -> str:
    """Show a reading with its interval.

    Example:
        >>> shown(Reading(name="accuracy", value=0.5, low=0.4, high=0.6), percent)
        '50 % (40 to 60)'
    """
    if reading is None:
        return _NONE
    if reading.low is None or reading.high is None:
        return number(reading.value)
    ends = [number(end).removesuffix(" %") for end in (reading.low, reading.high)]
    return f"{number(reading.value)} ({ends[0]} to {ends[1]})"


def _hits(distance: Reading | None) -> Reading | None:
    """Turn the share of labels missed into the share of labels read."""
    if distance is None:
        return None
    ends = {"low": distance.high, "high": distance.low}
    turned = {name: None if end is None else 1 - end for name, end in ends.items()}
    return distance.model_copy(update={"value": 1 - distance.value, **turned})


def _significant(value: float) -> str:
    return f"{value:.3g}"


def checks_section(page: Page) -> Section:
    """Show the cells whose answer is known: controls must be exact, null views must be at chance."""
    checks = [_check(record) for record in page.records if record.cell.purpose == "control" or _is_null(record)]
    controls = [record for record in page.records if record.cell.purpose == "control"]
    labels = [record for record in controls if record.reading(LEAK_AUC) is not None]
    values = {
        "checks": checks,
        "psnr": EXACT_PSNR,
        "error": EXACT_ERROR,
        "auc": EXACT_AUC,
        "labels": bool(labels),
        "examples": len(labels) < len(controls) or not controls,
    }
    return Section("checks", "Checks of the instruments", "checks.html", values)


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
