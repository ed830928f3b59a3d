"""A paper made by hand, and what the tests of all papers share: answers to planned cells, and one run at the smallest scale."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import ClassVar

import pytest

from leaktight.core.record import Cell, Record, Status
from leaktight.data import Digits
from leaktight.defences import GaussianNoise
from leaktight.learning import Federated
from leaktight.models import MLP
from leaktight.papers import Check, Order, Paper, Reproduction, Tables, reproduce
from leaktight.papers.paper import Plans, Records
from leaktight.papers.reproduction import above, claims, columns
from leaktight.plans import Grid, Plan
from leaktight.probes import Utility


class Toy(Paper):
    """A paper with two plans of one training each, and one claim."""

    name: ClassVar[str] = "toy"
    title: ClassVar[str] = "A toy"
    keys: ClassVar[Mapping[str, tuple[str, ...]]] = {"accuracy": ("std",), "figure": ("std",)}

    def plans(self, order: Order) -> Plans:
        scenario = Federated(data=Digits(), model=MLP(), participants=2, rounds=order.steps or 2)
        grid = Grid(victims=1, seeds=(order.seed,))
        defences = {"weak": 0.01, "strong": 1.0}
        return {
            name: Plan(
                title=name,
                scenarios={"1": scenario},
                defences=(GaussianNoise(std=std),),
                probes={"utility": Utility()},
                grid=grid,
            )
            for name, std in defences.items()
        }

    def tables(self, order: Order, records: Records) -> Tables:
        rows = [
            {"std": record.cell.defence.std, **columns("accuracy", record.reading("accuracy"))}
            for found in records.values()
            for record in found
            if isinstance(record.cell.defence, GaussianNoise)
        ]
        return {"accuracy": rows, "figure": [{"std": row["std"]} for row in rows]}

    def published(self) -> Tables:
        return {"accuracy": [{"std": 0.01, "accuracy": 0.875}], "figure": claims(("Noise hurts.", "Fig. 1"))}

    def checks(self, tables: Tables) -> list[Check]:
        weak, strong = (row["accuracy"] for row in tables["accuracy"])
        known = isinstance(weak, float) and isinstance(strong, float)
        return [above("Accuracy(weak) - Accuracy(strong)", weak - strong if known else None, 0)]

    def remarks(self, order: Order) -> list[str]:
        return ["Cut."] if order.steps else []


@pytest.fixture
def toy() -> Toy:
    return Toy()


# Not of the session: each paper has plans and answers of its own under these names, and a session keeps the first.
@pytest.fixture(scope="module")
def answered(plans: Plans, answer: Callable[[Cell], Record]) -> Callable[..., Records]:
    """Return a function that answers every planned cell, but those that are to fail; a control's answer is known already."""

    def records(fails: Callable[[Cell], bool] = lambda cell: False) -> Records:
        return {
            name: [
                Record(cell=cell, status=Status.FAILED, reason="No luck.") if fails(cell) else answer(cell)
                for cell in plan.cells()
                if cell.purpose != "control"
            ]
            for name, plan in plans.items()
        }

    return records


@pytest.fixture(scope="module")
def smoke(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Reproduction:
    """Return what a run of the module's `PAPER` at the smallest scale found."""
    done = reproduce(request.module.PAPER, Order(), tmp_path_factory.mktemp("smoke"))
    assert done.failed == ()
    return done.reproduction


@pytest.fixture
def folder(tmp_path: Path, sets: str) -> Path:
    """Return a folder of one's own with what a paper's `sets` has."""
    for place in Path(sets).iterdir():
        (tmp_path / place.name).symlink_to(place)
    return tmp_path
