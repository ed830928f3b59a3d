from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from leaktight.core.metric import Reading
from leaktight.core.record import Cell, Record, Status
from leaktight.data import HeldOut
from leaktight.defences.isotropic import IsotropicNoise
from leaktight.defences.sumkl import SumKL
from leaktight.learning import Split
from leaktight.papers import Order, Paper
from leaktight.papers.split_label_leakage import PAPER
from leaktight.papers.split_label_leakage.audits import LOOKS
from leaktight.papers.split_label_leakage.scales import Study, studies
from leaktight.probes.class_gradients import SHARES


def strength(cell: Cell) -> float:
    """Return what an answer's leakage falls with: 0 without a defence, and 1 for the strongest."""
    if isinstance(cell.defence, SumKL):
        return 2 * (cell.defence.bound or 0)
    if isinstance(cell.defence, IsotropicNoise):
        return min(1.0, cell.defence.ratio / 25)
    return {"none": 0.0, "max_norm": 0.5}[cell.defence.kind]


MORE = {"gradient norm": 0, "direction": 0.01, "clustering": 0.05, "label posterior": 0.03}
"""How much more each attack reads than the norm."""


def _answer(cell: Cell) -> Record:
    """Answer a cell with numbers that say which cell it was."""
    assert isinstance(cell.scenario, Split)
    utility = 0.75 - 0.05 * strength(cell) + cell.seed / 1000
    if isinstance(cell.scenario.data, HeldOut):
        utility = 0.7 + cell.scenario.rounds / 10_000
    found = [Reading(name="auc", value=utility)]
    if cell.label == "class gradients":
        names = [
            f"{of}_{label}_q{share * 100:g}"
            for of in ("norm", "cosine")
            for label in ("negative", "positive")
            for share in SHARES
        ]
        found += [
            Reading(name=name, value=float(at), each=tuple(at + look / 10 for look in range(LOOKS + 1)))
            for at, name in enumerate(names)
        ]
    elif cell.label != "utility":
        leak = 1 - 0.5 * strength(cell) + MORE[cell.label]
        for layer, less in ((None, 0.0), ("relu3", 0.01), ("relu2", 0.02), ("relu1", 0.03)):
            steps = tuple(leak - less + step / 1000 for step in range(cell.victims))
            found.append(Reading(name="leak_auc", value=leak - less, layer=layer, each=steps, chance=0.5))
            found.append(Reading(name="leak_auc_q95", value=leak - less + 0.02, layer=layer, chance=0.55 + less))
        passes = -(-cell.victims // cell.scenario.steps_per_pass())
        added = tuple(leak + number / 100 for number in range(1, passes + 1))
        found.append(Reading(name="leak_auc_passes", value=added[-1], each=added))
    return Record(cell=cell, status=Status.DONE, readings=tuple(found))


@pytest.fixture(scope="session")
def paper() -> Paper[Any]:
    return PAPER


@pytest.fixture(scope="session")
def study() -> Study:
    [found] = studies(Order(seed=5))
    return found.model_copy(update={"seeds": 3})


@pytest.fixture(scope="session")
def setup(study: Study) -> list[Study]:
    return [study]


@pytest.fixture(scope="session")
def answer() -> Callable[[Cell], Record]:
    return _answer


@pytest.fixture
def sets(tmp_path: Path) -> str:
    """Return a folder with few rows of both sets: a category tells the click, a delay the default."""
    clicks, credit = tmp_path / "ctr", tmp_path / "tabular"
    clicks.mkdir()
    credit.mkdir()
    for part in ("train", "test"):
        lines = [
            ",".join(str(value) for value in (int(row % 4 == 0), *([row % 3] * 13), *([row % 4] * 26)))
            for row in range(120)
        ]
        (clicks / f"criteo_{part}.csv.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    names = [
        "ID",
        "LIMIT_BAL",
        "SEX",
        "EDUCATION",
        "MARRIAGE",
        "AGE",
        "PAY_0",
        *(f"PAY_{month}" for month in range(2, 7)),
    ]
    names += ["BILL_AMT1", "PAY_AMT1", "default.payment.next.month"]
    lines = [",".join(names)]
    lines += [",".join(str(value) for value in (row, *([row % 3] * 13), int(row % 5 == 0))) for row in range(100)]
    (credit / "UCI_Credit_Card.csv").write_text("\n".join(lines))
    return str(tmp_path)
