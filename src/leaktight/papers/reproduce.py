"""Reproducing: the plans of a paper are run one after the other, and their records become its tables."""

from __future__ import annotations

import dataclasses
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from leaktight.core.record import Record, Status
from leaktight.findings.summary_file import write_summary
from leaktight.papers.paper import Order, Paper
from leaktight.papers.reproduction import Reproduction
from leaktight.running.scheduler import Progress, Step, run
from leaktight.running.worker_pool import Workers


@dataclasses.dataclass(frozen=True)
class Reproduced:
    """What `reproduce` returns.

    Args:
        reproduction: tables, published numbers and checks.
        failed: the record of every cell that failed; the tables have gaps where they would be.
    """

    reproduction: Reproduction
    failed: tuple[Record, ...] = ()


def reproduce(
    paper: Paper, order: Order, out: str | Path, workers: Workers = 1, progress: Progress | None = None
) -> Reproduced:
    """Run a paper's experiment and return its tables beside the published ones.

    Each plan is an audit in a folder of its own below `out`, so it is resumed after an interruption, and `leaktight report` shows
    it like any other.

    Args:
        paper: which one; `find_paper` knows them by name.
        order: scale, data, seed and steps.
        out: the folder for the audits.
        workers: how many processes do the work, at least 1, or who else does it.
        progress: called after each job, and now and then while a training lasts.
    """
    started = time.monotonic()
    paper = paper.prepare(order, Path(out), workers, progress)
    plans = paper.plans(order)
    records = {}
    for number, (name, plan) in enumerate(plans.items(), start=1):
        told = progress and _told(progress, f"{name} ({number} of {len(plans)})")
        records[name] = run(plan, Path(out) / name, workers=workers, progress=told)
        write_summary(Path(out) / name)
    tables = paper.tables(order, records)
    reproduction = Reproduction(
        paper=paper.name,
        scale=order.scale,
        seed=order.seed,
        seconds=time.monotonic() - started,
        tables=tables,
        published=paper.published(),
        checks=tuple(paper.checks(tables)),
        remarks=(*paper.remarks(order), *_remarks(order, [record for found in records.values() for record in found])),
    )
    failed = [record for found in records.values() for record in found if record.status is Status.FAILED]
    return Reproduced(reproduction, tuple(failed))


def _remarks(order: Order, records: Sequence[Record]) -> list[str]:
    """Return what is to be said of every paper's run: data that nobody read, and cells that have no number."""
    found = []
    if order.scale == "smoke" and order.data:
        found.append("The scale `smoke` runs on bundled data: what `--data` names was not read.")
    for status in (Status.REFUSED, Status.FAILED):
        reasons = Counter(r.reason for r in records if r.status is status and r.cell.purpose == "measure")
        found += [
            f"{count} {'cell' if count == 1 else 'cells'} {status}, a gap in the tables: {reason}"
            for reason, count in reasons.items()
        ]
    return found


def _told(progress: Progress, part: str) -> Callable[[Step], None]:
    def step(step: Step) -> None:
        progress(dataclasses.replace(step, text=f"{part}: {step.text}"))

    return step
