from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from leaktight.core.metric import Reading
from leaktight.core.record import Cell, Record, Status
from leaktight.learning import Federated
from leaktight.learning.schedule import ByProperty
from leaktight.papers import Order, Paper
from leaktight.papers.layer_leakage import PAPER
from leaktight.papers.layer_leakage.networks import layers_of
from leaktight.papers.layer_leakage.scales import Study, study_of

NAMES = [
    "Male",
    "White",
    "Black",
    "Asian",
    "No_Eyewear",
    "Eyeglasses",
    "Sunglasses",
    "Child",
    "Youth",
    "Middle_Aged",
    "Senior",
    "Black_Hair",
    "Blond_Hair",
    "Brown_Hair",
    "Gray_Hair",
]
GROUPS = [
    ("White", "Black", "Asian"),
    ("No_Eyewear", "Eyeglasses", "Sunglasses"),
    tuple(NAMES[7:11]),
    tuple(NAMES[11:]),
]


def near(cell: Cell, number: int) -> float:
    """Return how near a layer is to the first fully connected one: 1 there, and less by a tenth for each step."""
    assert isinstance(cell.scenario, Federated)
    names = list(layers_of(cell.scenario.model).values())
    first = next(at for at, name in enumerate(names, start=1) if "conv" not in name)
    return 1 - abs(number - first) / 10


def mixed(cell: Cell) -> bool:
    """Return whether only a part of a batch with the property has it."""
    assert isinstance(cell.scenario, Federated)
    return isinstance(cell.scenario.schedule, ByProperty) and cell.scenario.schedule.share < 1


def _sealing(cell: Cell) -> list[Reading]:
    """Answer what remains: layers are sealed from the last on, each as large as its number."""
    assert isinstance(cell.scenario, Federated)
    layers = layers_of(cell.scenario.model)
    matched = isinstance(cell.scenario.schedule, ByProperty) and cell.scenario.schedule.matched
    found = [
        Reading(name="counting_auc", value=0.5 if matched else 0.8),
        Reading(name="remaining_auc", value=0.9 + cell.seed / 1000),
    ]
    total = 0
    for count, (number, layer) in enumerate(reversed(layers.items()), start=1):
        total += 4 * number
        found += [
            Reading(name="remaining_auc", value=0.9 - count / 50 + cell.seed / 1000, layer=layer),
            Reading(name="sealed_layers", value=count, layer=layer),
            Reading(name="sealed_bytes", value=total, layer=layer),
        ]
    return found


def _answer(cell: Cell) -> Record:
    """Answer a cell with numbers that say which cell it was."""
    assert isinstance(cell.scenario, Federated)
    layers = layers_of(cell.scenario.model)
    found = [Reading(name="accuracy", value=0.8 + cell.seed / 1000)]
    if cell.label in ("random forest", "passive", "active"):
        found.append(Reading(name="property_auc", value=0.9 + cell.seed / 1000, low=0.7, high=1.0))
    if cell.label == "remaining leak":
        found += _sealing(cell)
    for number, layer in layers.items():
        auc = 0.5 + 0.4 * near(cell, number) + cell.seed / 1000 - (0.2 if mixed(cell) else 0.0)
        if cell.label in ("random forest", "network", "random entries"):
            less = {"random forest": 0.0, "network": 0.02, "random entries": 0.1}[cell.label]
            found.append(Reading(name="property_auc", value=auc - less, low=auc - 0.2, high=auc + 0.2, layer=layer))
        elif cell.label.startswith("V-information"):
            family = "network" if "network" in cell.label else "random_forest"
            less = 0.1 if "entries" in cell.label else 0.0
            for suffix, scale in (("", 1.0), ("_share", 2.0)):
                found.append(
                    Reading(name=f"v_information_{family}{suffix}", value=scale * (auc - less - 0.5), layer=layer)
                )
        elif cell.label == "sensitivity":
            for norm, factor in (("f", 1.0), ("1", -1.0), ("inf", 10.0)):
                found.append(Reading(name=f"sensitivity_{norm}", value=factor * near(cell, number) ** 2, layer=layer))
            found.append(Reading(name="sensitivity_f_share", value=near(cell, number) / 10, layer=layer))
        elif cell.label == "mutual information":
            for end, less in (("upper", 0.0), ("lower", 0.1)):
                value = 1 - number / 20 - less
                found.append(Reading(name=f"mutual_information_{end}_share", value=value, layer=layer))
    if cell.label.startswith("layers "):
        first, last = (int(end) for end in (cell.label.split()[1].split("-") * 2)[:2])
        error = 1.0 - 0.1 * (last - first) - (0.2 if first == 1 else 0.0)
        found.append(Reading(name="rmse_relative", value=error, low=error - 0.05, high=error + 0.05, against="raw"))
        found.append(Reading(name="psnr", value=10 / error, against="raw"))
    return Record(cell=cell, status=Status.DONE, readings=tuple(found))


@pytest.fixture(scope="session")
def sets(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a folder with small faces, each of one race, eyewear, age and hair, and small images of six classes."""
    folder = tmp_path_factory.mktemp("sets")
    draw = np.random.default_rng(0)
    flags = np.zeros((400, len(NAMES)), np.uint8)
    flags[:, 0] = draw.integers(0, 2, 400)
    for group in GROUPS:
        flags[np.arange(400), [NAMES.index(group[at]) for at in draw.integers(0, len(group), 400)]] = 1
    images = draw.integers(0, 256, (400, 16, 16, 3), dtype=np.uint8)
    (folder / "lfw").mkdir()
    np.savez(folder / "lfw" / "faces.npz", images=images, attributes=flags, attribute_names=NAMES)
    (folder / "cifar100").mkdir()
    labels = np.arange(60) % 6
    np.savez(
        folder / "cifar100" / "six.npz",
        x_train=images[:60],
        y_train=labels,
        x_test=images[60:84],
        y_test=np.arange(24) % 6,
    )
    return str(folder)


@pytest.fixture(scope="session")
def order(sets: str) -> Order:
    return Order(scale="small", data=sets, seed=5)


@pytest.fixture(scope="session")
def paper() -> Paper[Any]:
    return PAPER


@pytest.fixture(scope="session")
def study(order: Order) -> Study:
    return study_of(order)


@pytest.fixture(scope="session")
def setup(study: Study) -> Study:
    return study


@pytest.fixture(scope="session")
def answer() -> Callable[[Cell], Record]:
    return _answer
