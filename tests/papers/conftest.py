from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import pytest

from leaktight.audit import Grid, Plan
from leaktight.data import Digits
from leaktight.defences import GaussianNoise
from leaktight.learning import Federated
from leaktight.models import MLP
from leaktight.papers import Check, Order, Paper, Tables
from leaktight.papers.paper import Plans, Records
from leaktight.papers.reproduction import above, claims, columns
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
