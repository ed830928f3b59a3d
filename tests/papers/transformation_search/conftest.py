from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from leaktight.attacks import GradientMatching
from leaktight.core.metric import Reading
from leaktight.core.probe import Attempt
from leaktight.core.record import Cell, Record, Status
from leaktight.defences.transformation import Transformation
from leaktight.learning import Federated
from leaktight.metrics import PSNR, PSNRAboveChance, SearchGap
from leaktight.papers import Order, Paper, Row
from leaktight.papers.paper import Plans
from leaktight.papers.transformation_search import PAPER
from leaktight.papers.transformation_search.scales import Study, study_of
from leaktight.probes import PrivacyScore
from leaktight.transforms.policy import Policy

HYBRIDS = {"cifar10-lenet": Policy.of("3-1+18-15")}
IMAGES = 20


def spread(name: str, value: float, against: str | None = None, chance: float | None = None) -> Reading:
    """Return a reading whose images are half a unit below and above the value in turn."""
    each = tuple(value + (0.5 if at % 2 else -0.5) for at in range(IMAGES))
    return Reading.model_validate(
        {
            "name": name,
            "value": value,
            "low": value - 0.2,
            "high": value + 0.2,
            "n": IMAGES,
            "against": against,
            "chance": chance,
            "each": each,
        }
    )


def level(cell: Cell) -> float:
    """Return how many dB a defence takes: the hybrid 6, its parts 7 and 5, other policies 2, the rest 1."""
    if isinstance(cell.defence, Transformation):
        text = str(cell.defence.policy)
        return {"3-1+18-15": 6.0, "3-1": 7.0, "18-15": 5.0}.get(text, 2.0)
    return 0.0 if cell.defence.kind == "none" else 1.0


def score(cell: Cell) -> float:
    """Return a score for a label: between 0 and 1, from the indices in it."""
    text = cell.label.rpartition(" ")[2]
    if text == "none":
        return 0.5
    return sum(index for branch in Policy.of(text).branches for index in branch) / 300


def _answer(cell: Cell) -> Record:
    """Answer a cell with numbers that say which cell it was."""
    assert isinstance(cell.scenario, Federated)
    drop = level(cell)
    found = [Reading(name="accuracy", value=0.5 + drop / 1000 + cell.seed / 100, low=0.45, high=0.55, n=100)]
    if "score of" in cell.label:
        found.append(spread("privacy_score", score(cell) + (0.1 if cell.label.startswith("per_tensor") else 0.0)))
        found.append(Reading(name="accuracy_score", value=-1 - score(cell)))
        if isinstance(cell.probe, PrivacyScore) and cell.probe.curve:
            found += [spread(f"similarity_at_{way:g}", way * (1 - drop / 10)) for way in (0.0, 0.5, 1.0)]
    elif cell.label.startswith("attack on"):
        trained = cell.scenario.model.kind == "factory" or cell.stage == "end"
        value = 10 + 5 * score(cell) + (1 if trained else 2)
        found += [spread("psnr", value, "used"), spread("psnr", 20 - value, "raw")]
        found += [spread("psnr_above_chance", 2 * value - 18, "used"), spread("psnr_above_chance", 11 - value, "raw")]
    elif cell.label == "similarity":
        for moment in (0, 50):
            for number, layer in enumerate(("body.conv1", "body.conv2", "head")):
                value = 0.1 + moment / 100 - (drop / 20 if number == 0 else 0.0)
                found.append(Reading(name=f"similarity_after_{moment}", value=value, layer=layer))
    elif cell.label == "accuracy":
        for played in (0, 100, 200):
            for name, more in (("accuracy", 0.0), ("own_accuracy", 0.1)):
                found.append(
                    Reading(name=f"{name}_after_{played}", value=0.1 + played / 1000 + more, low=0.0, high=1.0)
                )
            found += [
                Reading(name=f"{name}_after_{played}", value=2.0 + more)
                for name, more in (("loss", 0), ("own_loss", 1))
            ]
    else:
        known = {"strongest": 4.0}.get(cell.label, 0.0)
        value = 14 - drop + cell.seed / 10
        # The best answer without a message is worth as much under every policy.
        found += [
            spread(name, value + more - less, against)
            for name, less in (("psnr", 0.0), ("psnr_above_chance", 11.5))
            for against, more in (("used", 0.0), ("raw", known - 1))
        ]
    return Record(cell=cell, status=Status.DONE, readings=tuple(found))


@pytest.fixture(scope="session")
def sets(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a folder with small sets of images under the names of the real ones."""
    folder = tmp_path_factory.mktemp("sets")
    draw = np.random.default_rng(0)
    for name, channels in (("cifar10", 3), ("cifar100", 3), ("fashion-mnist", 1)):
        images = draw.integers(0, 256, (700, 16, 16, channels), dtype=np.uint8)
        labels = np.arange(700) % 10
        (folder / name).mkdir()
        parts = {"x_train": images[:500], "y_train": labels[:500], "x_test": images[500:], "y_test": labels[500:]}
        np.savez(folder / name / "set.npz", **parts)
    return str(folder)


@pytest.fixture(scope="session")
def order(sets: str) -> Order:
    return Order(scale="small", data=sets, seed=5)


@pytest.fixture(scope="session")
def paper() -> Paper[Any]:
    return PAPER


@pytest.fixture(scope="session")
def study(order: Order) -> Study:
    return study_of(order).model_copy(update={"hybrids": HYBRIDS})


@pytest.fixture(scope="session")
def setup(study: Study) -> Study:
    return study


@pytest.fixture(scope="session")
def answer() -> Callable[[Cell], Record]:
    return _answer


@pytest.fixture(scope="session")
def put() -> Callable[..., None]:
    """Return a function that gives rows a value that is beyond doubt."""

    def change(rows: list[Row], column: str, value: float) -> None:
        for row in rows:
            row |= {column: value, f"{column}_low": value, f"{column}_high": value}

    return change


@pytest.fixture(scope="session")
def attack() -> Callable[..., GradientMatching]:
    """Return a function that returns the attack of a part of the focus by its label."""

    def find(plans: Plans, part: str, label: str) -> GradientMatching:
        probe = plans[f"cifar10-lenet-{part}"].probes[label]
        assert isinstance(probe, Attempt)
        assert probe.metrics == (PSNR(), PSNRAboveChance(), SearchGap())
        assert isinstance(probe.attack, GradientMatching)
        assert probe.attack.labels == "given"
        return probe.attack

    return find
