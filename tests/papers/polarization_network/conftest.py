from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from leaktight.core.metric import Reading
from leaktight.core.record import Cell, Record, Status
from leaktight.learning import Standalone
from leaktight.papers import Order, Paper
from leaktight.papers.polarization_network import PAPER
from leaktight.papers.polarization_network.scales import Study, studies
from leaktight.statistics.outcomes import pack_hits

ACCURACY = {"none": 0.9, "gaussian_noise": 0.4, "chain": 0.3, "polarization": 0.8, "laplace_noise": 0.4}
ERROR = {"none": 0.0, "gaussian_noise": 0.5, "chain": 0.75, "polarization": 1.0, "laplace_noise": 0.55}
LABELS = {"fan2020": 0.25, "strongest": 0.2, "label_reading": 0.0}
RATIO = {"laplace_noise": 0.35}
LATER = 0.2
"""By how much larger errors are on trained networks."""
COSINE = {"initial": 0.05, "early": 0.2, "end": 0.3}


def reading(name: str, value: float) -> Reading:
    return Reading(name=name, value=value, low=value - 0.1, high=value + 0.1, against="raw")


def _answer(cell: Cell) -> Record:
    """Answer a cell with numbers that say which cell it was."""
    kind = cell.defence.kind
    if cell.label == "utility":
        alone = isinstance(cell.scenario, Standalone)
        value = 0.2 if alone else ACCURACY[kind]
        found = [Reading(name="accuracy", value=value, low=0.1, high=0.95, n=10, outcomes=hits(value, cell.seed))]
    elif cell.label in ("head_features", "features"):
        found = [reading("head_features", 0.5 if getattr(cell.defence, "head_noise", 0.0) else 0.0)]
    elif cell.label == "cosines":
        layers = ("body.conv1.weight", "body.conv1.bias", "head.weight")
        one = reading("perturbation_cosine", COSINE[cell.stage])
        found = [one.model_copy(update={"layer": layer}) for layer in layers]
    else:
        later = LATER if cell.stage == "end" else 0.0
        labels = 0.4 if getattr(cell.defence, "head_noise", 0.0) else LABELS.get(cell.label, 0.0)
        found = [reading("label_distance", labels)]
        if cell.label != "label_reading":
            error = 0.0 if cell.label == "analytic" else ERROR[kind] * _skill(cell) + cell.batch_size / 100 + later
            found += [
                reading("rmse_relative", error),
                reading("rmse_unclipped", 10 * error),
                reading("tracing_distance", 0.75),
            ]
        if kind != "none":
            ratio = RATIO.get(kind, 0.5)
            found += [
                reading("gradient_ratio", 4 * ratio),
                reading("body_ratio", 2 * ratio),
                reading("bias_ratio", ratio),
            ]
    return Record(cell=cell, status=Status.DONE, readings=tuple(found))


def hits(value: float, seed: int) -> str:
    """Return that share of ten test images told right; another image with each seed."""
    return pack_hits(torch.roll(torch.arange(10) < round(10 * value), seed))


def _skill(cell: Cell) -> float:
    """Return how much of the error is left to an attack: the suite is better at strong settings and top-k."""
    if cell.label != "strongest":
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
