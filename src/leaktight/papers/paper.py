"""Papers: what every published experiment offers, so that one command serves them all."""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from pydantic import Field

from leaktight.core.record import Record
from leaktight.core.value import Value
from leaktight.data.files import Location
from leaktight.papers.reproduction import Check, Scale, Tables
from leaktight.plans.plan import Plan
from leaktight.running.scheduler import Progress
from leaktight.running.worker_pool import Workers

Plans = dict[str, Plan]
"""The audits of an experiment by name; each gets a folder of that name."""
Records = Mapping[str, Sequence[Record]]
"""The records of those audits, under the same names."""


class Order(Value):
    """What a person asks of a reproduction.

    Args:
        scale: `smoke` runs in minutes on bundled data, `small` within the hour on real sets, `paper` is the full experiment.
        data: the folder with real data sets, a sub-folder each; empty if there is none.
        seed: what all randomness derives from.
        steps: cut rounds, local steps and attack iterations to so many, and everything that is counted to its least, to prove
            that every part runs; None runs what the scale says.
    """

    scale: Scale = "smoke"
    data: Location = ""
    seed: int = Field(0, ge=0)
    steps: int | None = Field(None, ge=1)


class Paper(abc.ABC):
    """One paper's experiment: plans for a scale, tables from their records, what was published, and what is claimed.

    `keys` names for each table the columns by which our rows and the published ones belong together.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    keys: ClassVar[Mapping[str, tuple[str, ...]]]

    def prepare(self, order: Order, folder: Path, workers: Workers = 1, progress: Progress | None = None) -> Paper:
        """Compute what the plans depend on, such as a search, and return the paper that knows it; most papers have nothing of the kind.

        Args:
            order: what is asked.
            folder: where audits go; what is computed is kept there, so that nothing is done twice.
            workers: how many processes do the work, or who else does it.
            progress: called as it goes on.
        """
        return self

    @abc.abstractmethod
    def plans(self, order: Order) -> Plans:
        """Return the audits that an order takes, in the order in which they are run."""

    @abc.abstractmethod
    def tables(self, order: Order, records: Records) -> Tables:
        """Return the tables that follow from the records of all plans."""

    @abc.abstractmethod
    def published(self) -> Tables:
        """Return the published numbers under the names of our tables."""

    @abc.abstractmethod
    def checks(self, tables: Tables) -> list[Check]:
        """Return what the paper claims, and whether it holds in these tables."""

    def remarks(self, order: Order) -> list[str]:
        """Return what a reader of the numbers must know: what was cut, which data sets were left out, and the paper's own notes."""
        found = []
        if order.steps is not None:
            found.append(
                f"Cut by --steps {order.steps}: {self.cut(order)}. The numbers show that every part runs, and nothing else."
            )
        missing = self.left_out(order)
        if missing:
            found.append(f"Left out, because the data folder has no such set: {', '.join(missing)}.")
        return [*found, *self.notes(order)]

    def cut(self, order: Order) -> str:
        """Return what `steps` cuts, as the middle of a sentence."""
        return f"at most {order.steps} of everything that is counted"

    def left_out(self, order: Order) -> list[str]:
        """Return the paper's data sets that an order does without because they are not in the folder."""
        return []

    def notes(self, order: Order) -> list[str]:
        """Return what else a reader must know to compare our numbers with the published ones."""
        return []
