"""Papers: a published paper as data, so that one command serves them all."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, Literal, Protocol, TypeVar

from pydantic import Field

from leaktight.core.errors import InvalidValue
from leaktight.core.value import Value
from leaktight.data.files import Location
from leaktight.papers.check import Check
from leaktight.papers.records import Records
from leaktight.papers.row import Row, Tables
from leaktight.papers.summary import Summary
from leaktight.plans.plan import Plan
from leaktight.report.page import Section
from leaktight.running.scheduler import Progress
from leaktight.running.worker_pool import Workers

Scale = Literal["smoke", "small", "paper"]
Plans = dict[str, Plan]
"""The audits of an experiment by name; each gets a folder of that name."""
NO_SUMMARY = Summary()
Setup = TypeVar("Setup")
"""What a paper makes of an order: which data sets and networks, how long they are trained, how hard they are attacked.
"""


class Order(Value):
    """What a person asks of a reproduction.

    Args:
        scale: `smoke` runs in minutes on bundled data, `small` within the hour on real sets, `paper` is the full
            experiment.
        data: the folder with real data sets, a sub-folder each; empty if there is none.
        seed: what all randomness derives from.
        steps: cut rounds, local steps and attack iterations to so many, and everything that is counted to its least, to
            prove that every part runs; None runs what the scale says.
    """

    scale: Scale = "smoke"
    data: Location = ""
    seed: int = Field(0, ge=0)
    steps: int | None = Field(None, ge=1)


class Prepare(Protocol):
    """Computes what plans depend on, such as a search, and returns the setup that knows it."""

    def __call__(self, setup: Any, folder: Path, workers: Workers = 1, progress: Progress | None = None) -> Any:
        """Compute it, or take it from an earlier run in the folder."""


def _same(setup: Any, folder: Path, workers: Workers = 1, progress: Progress | None = None) -> Any:
    return setup


@dataclasses.dataclass(frozen=True)
class Experiment(Generic[Setup]):
    """One table or figure of a paper, or a table of our own.

    Args:
        table: the name of our table.
        keys: the columns by which our rows and the published ones belong together.
        rows: our table, from the records of the paper's audits.
        plans: the audits it takes. Experiments that need the same audit plan it under the same name, and it is run
            once.
        published: the published numbers, or the claims of the text where there are only figures; none for a table of
            our own.
        checks: what the paper claims of this table, and whether it holds in ours.
        notes: where our numbers and the published ones are not of the same thing.
    """

    table: str
    keys: tuple[str, ...]
    rows: Callable[[Setup, Records], list[Row]]
    plans: Callable[[Setup], Plans] = lambda setup: {}
    published: Sequence[Row] = ()
    checks: Callable[[Sequence[Row]], list[Check]] = lambda rows: []
    notes: Callable[[Setup], list[str]] = lambda setup: []


@dataclasses.dataclass(frozen=True)
class Paper(Generic[Setup]):
    """One paper: what an order comes to, and its experiments in the order in which they are shown.

    Args:
        name: what the command line calls it.
        title: its title, authors and year.
        setup: what an order comes to at its scale; with `steps`, cut to the least that still runs every part.
        experiments: its tables and figures.
        cut: what `steps` cuts, as the middle of a sentence.
        missing_sets: the data sets that an order does without because they are not in the folder.
        notes: what a reader must know of all tables.
        prepare: computes what plans depend on; most papers have nothing of the kind.
        sections: parts of the page that stand before the tables, from our tables, the published ones, and the folder of
            the reproduction.
        summary: what its page says beside numbers: claims, and why some do not hold.
    """

    name: str
    title: str
    setup: Callable[[Order], Setup]
    experiments: tuple[Experiment[Setup], ...]
    cut: Callable[[Order], str] = lambda order: f"at most {order.steps} of everything that is counted"
    missing_sets: Callable[[Order], list[str]] = lambda order: []
    notes: Callable[[Setup], list[str]] = lambda setup: []
    prepare: Prepare = _same
    sections: Callable[[Tables, Tables, Path], list[Section]] = lambda ours, published, folder: []
    summary: Summary = NO_SUMMARY

    @property
    def keys(self) -> Mapping[str, tuple[str, ...]]:
        """The columns that name a row, for each table."""
        return {experiment.table: experiment.keys for experiment in self.experiments}

    def plans(self, setup: Setup) -> Plans:
        """Return the audits of all experiments; raise an error if two of them mean different audits by one name."""
        plans: Plans = {}
        for experiment in self.experiments:
            for name, plan in experiment.plans(setup).items():
                if plans.setdefault(name, plan) != plan:
                    raise InvalidValue(
                        f"The audit `{name}` of {experiment.table} must be the one that others planned. It differs."
                    )
        return plans

    def tables(self, setup: Setup, records: Records) -> Tables:
        """Return the table of every experiment."""
        return {experiment.table: experiment.rows(setup, records) for experiment in self.experiments}

    def published_tables(self) -> Tables:
        """Return the published numbers under the names of our tables; a table of our own has none."""
        return {experiment.table: list(experiment.published) for experiment in self.experiments if experiment.published}

    def checks(self, tables: Tables) -> list[Check]:
        """Return what the paper claims, and whether it holds in these tables."""
        return [check for experiment in self.experiments for check in experiment.checks(tables[experiment.table])]

    def remarks(self, order: Order, setup: Setup) -> list[str]:
        """Return what a reader of the numbers must know: what was cut, which data sets were left out, and all notes."""
        remarks = []
        if order.steps is not None:
            remarks.append(
                f"Cut by --steps {order.steps}: {self.cut(order)}. The numbers show that every part runs, and nothing "
                "else."
            )
        missing = self.missing_sets(order)
        if missing:
            remarks.append(f"Left out, because the data folder has no such set: {', '.join(missing)}.")
        remarks += self.notes(setup)
        return remarks + [note for experiment in self.experiments for note in experiment.notes(setup)]
