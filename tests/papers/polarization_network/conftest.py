from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from leaktight.core.metric import Reading
from leaktight.core.record import Cell, Record, Status
from leaktight.learning import Standalone
from leaktight.papers import Order, Paper
from leaktight.papers.polarization_network import PAPER
from leaktight.papers.polarization_network.scales import Study, studies

ACCURACY = {"none": 0.9, "gaussian_noise": 0.4, "chain": 0.3, "polarization": 0.8, "laplace_noise": 0.4}
ERROR = {"none": 0.0, "gaussian_noise": 0.5, "chain": 0.75, "polarization": 1.0, "laplace_noise": 0.55}
LABELS = {"fan2020": 0.25, "fan2020-adaptive": 0.2, "label_reading": 0.0}
RATIO = {"laplace_noise": 0.35}


def reading(name: str, value: float) -> Reading:
    return Reading(name=name, value=value, low=value - 0.1, high=value + 0.1, against="raw")


def _answer(cell: Cell) -> Record:
    """Answer a cell with numbers that say which cell it was."""
    kind = cell.defence.kind
    if cell.label == "utility":
        alone = isinstance(cell.scenario, Standalone)
        found = [Reading(name="accuracy", value=0.2 if alone else ACCURACY[kind], low=0.1, high=0.95)]
    else:
        found = [reading("label_distance", LABELS.get(cell.label, 0.0))]
        if cell.label != "label_reading":
            found += [
                reading("rmse_relative", ERROR[kind] * _skill(cell) + cell.batch_size / 100),
                reading("tracing_distance", 0.75),
            ]
        if kind != "none":
            found.append(reading("gradient_ratio", RATIO.get(kind, 0.5)))
    return Record(cell=cell, status=Status.DONE, readings=tuple(found))


def _skill(cell: Cell) -> float:
    """Return how much of the error is left to an attack: the adaptive one is better at strong settings and top-k."""
    if cell.label != "fan2020-adaptive":
        return 1.0
    if cell.defence.kind == "chain":
        return 0.2
    return 0.5 if getattr(cell.defence, "alpha2", 1.0) > 0.1 else 2.0


@pytest.fixture(scope="session")
def paper() -> Paper[Any]:
    return PAPER


@pytest.fixture(scope="session")
def study() -> Study:
    [found] = studies(Order(seed=5))
    return found


@pytest.fixture(scope="session")
def setup(study: Study) -> list[Study]:
    return [study]


@pytest.fixture(scope="session")
def answer() -> Callable[[Cell], Record]:
    return _answer
