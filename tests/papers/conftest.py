"""A paper made by hand, and what all papers' tests share: answers to planned cells, and a run at the smallest scale."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from leaktight.core.record import Cell, Record, Status
from leaktight.data import Digits
from leaktight.defences import GaussianNoise
from leaktight.learning import Federated
from leaktight.models import MLP
from leaktight.papers import Check, Experiment, Order, Paper, Records, Reproduction, Row, Tables, reproduce
from leaktight.papers.check import above
from leaktight.papers.paper import Plans
from leaktight.papers.row import claims, columns, number, rows_where
from leaktight.plans import Grid, Plan
from leaktight.probes import Utility

STRENGTHS = {"weak": 0.01, "strong": 1.0}


def toy_plans(order: Order) -> Plans:
    scenario = Federated(data=Digits(), model=MLP(), participants=2, rounds=order.steps or 2)
    return {
        name: Plan(
            title=name,
            scenarios={"1": scenario},
            defences=(GaussianNoise(std=std),),
            probes={"utility": Utility()},
            grid=Grid(victims=1, seeds=(order.seed,)),
        )
        for name, std in STRENGTHS.items()
    }


def toy_rows(order: Order, records: Records) -> list[Row]:
    return [
        {
            "std": std,
            **columns("accuracy", records.where(name, defence=GaussianNoise(std=std)).done.reading("accuracy")),
        }
        for name, std in STRENGTHS.items()
    ]


def toy_checks(rows: Sequence[Row]) -> list[Check]:
    weak, strong = (number(row, "accuracy") for row in rows)
    gap = None if weak is None or strong is None else weak - strong
    return [above("Accuracy(weak) - Accuracy(strong)", gap, 0)]


@pytest.fixture
def toy() -> Paper[Order]:
    """Return a paper with two plans of one training run each, two tables of them, and one claim."""
    accuracy = Experiment(
        table="accuracy",
        keys=("std",),
        plans=toy_plans,
        rows=toy_rows,
        published=[{"std": 0.01, "accuracy": 0.875}],
        checks=toy_checks,
    )
    figure = Experiment(
        table="figure",
        keys=("std",),
        plans=toy_plans,
        rows=lambda order, records: [{"std": std} for std in STRENGTHS.values()],
        published=claims(("Noise hurts.", "Fig. 1")),
    )
    return Paper(name="toy", title="A toy", setup=lambda order: order, experiments=(accuracy, figure))


# Not of the session: each paper has a `paper`, a `setup` and answers of its own, and a session keeps the first.
@pytest.fixture(scope="module")
def plans(paper: Paper[Any], setup: Any) -> Plans:
    return paper.plans(setup)


@pytest.fixture(scope="module")
def answered(plans: Plans, answer: Callable[[Cell], Record]) -> Callable[..., Records]:
    """Return a function that answers every planned cell but those that are to fail; controls answer themselves."""

    def records(fails: Callable[[Cell], bool] = lambda cell: False) -> Records:
        return Records(
            {
                name: [
                    Record(cell=cell, status=Status.FAILED, reason="No luck.") if fails(cell) else answer(cell)
                    for cell in plan.cells()
                    if cell.purpose != "control"
                ]
                for name, plan in plans.items()
            }
        )

    return records


@pytest.fixture(scope="module")
def whole_tables(paper: Paper[Any], setup: Any, answered: Callable[..., Records]) -> Tables:
    return paper.tables(setup, answered())


@pytest.fixture
def tables(whole_tables: Tables) -> Tables:
    """Return the tables of all answers, to be changed at will."""
    return copy.deepcopy(whole_tables)


@pytest.fixture
def only(tables: Tables) -> Callable[..., Row]:
    """Return a function that returns the only row of a table with these values."""

    def find(table: str, **wanted: Any) -> Row:
        [row] = rows_where(tables[table], **wanted)
        return row

    return find


@pytest.fixture
def find_check(paper: Paper[Any], tables: Tables) -> Callable[..., Check]:
    """Return a function that returns the only check of the tables, as they are then, whose name starts and ends so."""

    def find(start: str, end: str = "") -> Check:
        [check] = [check for check in paper.checks(tables) if check.name.startswith(start) and check.name.endswith(end)]
        return check

    return find


@pytest.fixture(scope="module")
def smoke(paper: Paper[Any], tmp_path_factory: pytest.TempPathFactory) -> Reproduction:
    """Return what a run of the paper at the smallest scale found."""
    done = reproduce(paper, Order(), tmp_path_factory.mktemp("smoke"))
    assert done.failed == ()
    return done


@pytest.fixture
def folder(tmp_path: Path, sets: str) -> Path:
    """Return a folder of one's own with what a paper's `sets` has."""
    for place in Path(sets).iterdir():
        (tmp_path / place.name).symlink_to(place)
    return tmp_path
