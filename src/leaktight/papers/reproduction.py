"""Reproductions: a paper's audits are run, and their records become its tables beside the published ones."""

from __future__ import annotations

import dataclasses
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field

from leaktight.core.record import Record, Status
from leaktight.core.value import Value
from leaktight.findings.summary_file import write_summary
from leaktight.papers.check import Check
from leaktight.papers.paper import Order, Paper, Scale
from leaktight.papers.records import Records
from leaktight.papers.row import Tables
from leaktight.plans.plan import Plan
from leaktight.running.scheduler import OnBegin, Progress, Step, run
from leaktight.running.worker_pool import Workers

RESULT_FILE = "reproduction.json"


class Reproduction(Value):
    """A paper's experiments at one scale: our tables, the published ones under the same names, and the checks.

    Args:
        paper: its name.
        scale: `smoke`, `small` or `paper`.
        seed: what all randomness derives from.
        steps: to how many of everything it was cut; None if it was not.
        seconds: how long this run took; what was kept from an earlier one took none.
        tables: our numbers, a list of flat rows for each name.
        keys: the columns by which rows of a table belong together.
        published: the published numbers, or the claims of the text where there are only figures.
        checks: what the paper claims, and whether it holds.
        remarks: what a reader of the numbers must know, a sentence or two each.
        failed: the record of every cell that failed; the tables have gaps where they would be. No part of the file.
    """

    paper: str
    scale: Scale
    seed: int
    steps: int | None = None
    seconds: float
    tables: Tables
    keys: dict[str, tuple[str, ...]] = {}
    published: Tables
    checks: tuple[Check, ...]
    remarks: tuple[str, ...] = ()
    failed: tuple[Record, ...] = Field((), exclude=True, repr=False)


def reproduce(
    paper: Paper[Any],
    order: Order,
    out: str | Path,
    workers: Workers = 1,
    progress: Progress | None = None,
    on_begin: OnBegin | None = None,
) -> Reproduction:
    """Run a paper's experiments and return their tables beside the published ones.

    Each plan is an audit in a folder of its own below `out`, so it is resumed after an interruption, and `leaktight
    report` shows it like any other.

    Args:
        paper: which one; `find_paper` knows them by name.
        order: scale, data, seed and steps.
        out: the folder for the audits.
        workers: how many processes do the work, at least 1, or who else does it.
        progress: called when a task begins and when it ends, and now and then during a training run.
        on_begin: called with each plan, under the name of its part, before anything of it is computed.
    """
    started = time.monotonic()
    setup = paper.prepare(paper.setup(order), Path(out), workers, progress)
    plans = paper.plans(setup)
    audits = {}
    for number, (name, plan) in enumerate(plans.items(), start=1):
        label = f"{name} ({number} of {len(plans)})"
        part, begin = progress and with_label(progress, label), on_begin and with_title(on_begin, label)
        audits[name] = run(plan, Path(out) / name, workers=workers, progress=part, on_begin=begin)
        write_summary(Path(out) / name)
    tables = paper.tables(setup, Records(audits))
    checks = paper.checks(tables)
    # Reasons are those of whole runs at this scale: elsewhere the same check may fail for another one.
    explained = order.scale == "small" and order.steps is None
    records = [record for each in audits.values() for record in each]
    return Reproduction(
        paper=paper.name,
        scale=order.scale,
        seed=order.seed,
        steps=order.steps,
        seconds=time.monotonic() - started,
        tables=tables,
        keys=dict(paper.keys),
        published=paper.published_tables(),
        checks=tuple(paper.summary.explain(checks) if explained else checks),
        remarks=(*paper.remarks(order, setup), *_remarks(order, records)),
        failed=tuple(record for record in records if record.status is Status.FAILED),
    )


def with_label(progress: Progress, part: str) -> Callable[[Step], None]:
    """Return what reports progress under the name of a part."""

    def report(step: Step) -> None:
        progress(dataclasses.replace(step, text=f"{part}: {step.text}"))

    return report


def with_title(on_begin: OnBegin, title: str) -> OnBegin:
    """Return what is told of a plan under another title."""

    def begin(plan: Plan) -> None:
        on_begin(plan.model_copy(update={"title": title}))

    return begin


def _remarks(order: Order, records: Sequence[Record]) -> list[str]:
    """Return what is to be said of every paper's run: data that nobody read, and cells that have no number."""
    remarks = []
    if order.scale == "smoke" and order.data:
        remarks.append("The scale `smoke` runs on bundled data: what `--data` names was not read.")
    for status in (Status.REFUSED, Status.FAILED):
        reasons = Counter(r.reason for r in records if r.status is status and r.cell.purpose == "measure")
        remarks += [
            f"{count} {'cell' if count == 1 else 'cells'} {status}, a gap in the tables: {reason}"
            for reason, count in reasons.items()
        ]
    return remarks
