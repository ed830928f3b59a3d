from __future__ import annotations

import gzip
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from leaktight.attacks import GanAttack
from leaktight.core.metric import Reading
from leaktight.core.probe import Attempt
from leaktight.core.random import stream
from leaktight.core.record import Cell, Record, Status
from leaktight.defences.class_keys import ClassKeys
from leaktight.learning import Federated
from leaktight.papers import Order, Paper
from leaktight.papers.class_keys import PAPER
from leaktight.papers.class_keys.scales import Scope, scope_of
from leaktight.papers.paper import Plans
from leaktight.probes import ParticipantAccuracy


def share(attack: GanAttack, cell: Cell) -> float:
    """Return which share of samples an answer says was recognised: by how near the attacker's key is."""
    if cell.purpose == "null":
        return 0.02
    if not isinstance(cell.defence, ClassKeys):
        return {"none": 0.9, "polarization": 0.8, "top_k": 0.7, "gaussian_noise": 0.6}[cell.defence.kind]
    if attack.class_key == "distance":
        return max(0.0, 0.9 - 1.7 * attack.distance)
    return {"exact": 0.95, "estimated": 16 / cell.defence.dimensions, "random": 8 / cell.defence.dimensions}[
        attack.class_key
    ]


def _answer(cell: Cell) -> Record:
    """Answer a cell with numbers that say which cell it was."""
    assert isinstance(cell.scenario, Federated)
    keyed = isinstance(cell.defence, ClassKeys)
    accuracy = 0.9 + cell.scenario.rounds / 10_000 - 0.01 * keyed + cell.seed / 1000
    found = [Reading(name="accuracy", value=accuracy)]
    if isinstance(cell.probe, ParticipantAccuracy):
        found.append(Reading(name="participant_accuracy", value=accuracy + 0.05))
    if isinstance(cell.probe, Attempt):
        assert isinstance(cell.probe.attack, GanAttack)
        value = share(cell.probe.attack, cell)
        found += [
            Reading(name="recognised", value=value + cell.seed / 1000, chance=0.1),
            Reading(name="recognised_any", value=value + cell.seed / 1000, chance=0.5),
            Reading(name="recognised_confidence", value=value / 2),
            Reading(name="recognised_median", value=value / 2),
            Reading(name="recognised_best", value=value),
            Reading(name="nearest_private", value=0.5, chance=0.5),
            Reading(name="nearest_any", value=0.5, chance=0.5),
            Reading(name="mean_picture", value=1.2, chance=1.0),
            Reading(name="sample_diversity", value=0.3, chance=0.0),
        ]
        if cell.probe.attack.class_key == "estimated":
            found.append(Reading(name="key_cosine", value=0.02 + cell.seed / 1000, chance=0.04))
    return Record(cell=cell, status=Status.DONE, readings=tuple(found))


@pytest.fixture(scope="session")
def paper() -> Paper[Any]:
    return PAPER


@pytest.fixture(scope="session")
def scope() -> Scope:
    made = scope_of(Order(seed=5))
    study = made.studies[0].model_copy(update={"seeds": 3, "victims": (0, 1), "participants": (2, 5)})
    return made.model_copy(update={"studies": (study,), "repeats": 3, "powers": (1, 6, 10), "shared": (64, 4096)})


@pytest.fixture(scope="session")
def setup(scope: Scope) -> Scope:
    return scope


@pytest.fixture(scope="session")
def answer() -> Callable[[Cell], Record]:
    return _answer


@pytest.fixture
def sets(tmp_path: Path) -> str:
    """Return a folder with a few made-up digits of 28x28, in the files of MNIST."""
    place = tmp_path / "mnist"
    place.mkdir()
    for name, count in (("train", 200), ("t10k", 60)):
        labels = torch.arange(count) % 10
        images = torch.randint(0, 60, (count, 28, 28), generator=stream(0, name))
        images[torch.arange(count), 2 * labels + 3] += 180
        head = struct.pack(">IIII", 2051, count, 28, 28)
        (place / f"{name}-images-idx3-ubyte.gz").write_bytes(gzip.compress(head + bytes(images.flatten().tolist())))
        head = struct.pack(">II", 2049, count)
        (place / f"{name}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(head + bytes(labels.tolist())))
    return str(tmp_path)


@pytest.fixture
def faces(sets: str) -> str:
    """Return the same folder with ten made-up faces of each of forty people."""
    place = Path(sets, "olivetti")
    place.mkdir()
    images = torch.randint(0, 256, (400, 64, 64), generator=stream(0, "faces"), dtype=torch.uint8)
    np.savez(place / "faces.npz", images=images.numpy(), target=np.arange(400) // 10)
    return sets


@pytest.fixture(scope="session")
def scenario() -> Callable[..., Federated]:
    """Return a function that returns the first scenario of a plan."""

    def find(plans: Plans, name: str) -> Federated:
        found = next(iter(plans[name].scenarios.values()))
        assert isinstance(found, Federated)
        return found

    return find


@pytest.fixture(scope="session")
def attacks() -> Callable[..., dict[str, GanAttack]]:
    """Return a function that returns the attacks of a plan by label."""

    def find(plans: Plans, name: str) -> dict[str, GanAttack]:
        found = {}
        for label, probe in plans[name].probes.items():
            assert isinstance(probe, Attempt)
            assert isinstance(probe.attack, GanAttack)
            found[label] = probe.attack
        return found

    return find
