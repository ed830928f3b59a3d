from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from leaktight.core.errors import InvalidValue
from leaktight.papers import PAPERS, Experiment, Order, Paper, Records, find_paper
from leaktight.papers.row import claims


def test_a_paper_says_by_itself_what_was_cut_and_left_out(toy: Paper[Order]) -> None:
    first = dataclasses.replace(toy.experiments[0], notes=lambda setup: ["Mind the gap."])
    paper = dataclasses.replace(
        toy, experiments=(first,), missing_sets=lambda order: ["MNIST", "SVHN"], notes=lambda setup: ["Read on."]
    )
    left_out = "Left out, because the data folder has no such set: MNIST, SVHN."
    assert paper.remarks(Order(), Order()) == [left_out, "Read on.", "Mind the gap."]
    [cut, *_] = paper.remarks(Order(steps=2), Order())
    assert cut.startswith("Cut by --steps 2: at most 2 of everything that is counted. The numbers show")


def test_an_audit_that_several_experiments_need_is_planned_once(toy: Paper[Order]) -> None:
    assert [list(experiment.plans(Order())) for experiment in toy.experiments] == [["weak", "strong"]] * 2
    assert list(toy.plans(Order())) == ["weak", "strong"]


def test_two_audits_of_one_name_are_refused(toy: Paper[Order]) -> None:
    first, second = toy.experiments
    other = dataclasses.replace(second, plans=lambda order: first.plans(Order(steps=5)))
    with pytest.raises(
        InvalidValue, match=r"The audit `weak` of figure must be the one that others planned. It differs."
    ):
        dataclasses.replace(toy, experiments=(first, other)).plans(Order())


def test_an_experiment_needs_no_more_than_a_table() -> None:
    """A figure that is added is one value: what it does not name is empty."""
    bare: Experiment[Order] = Experiment(table="t", keys=("a",), rows=lambda order, records: [{"a": 1}])
    full: Experiment[Order] = Experiment(table="u", keys=("a",), rows=bare.rows, published=claims(("So.", "Fig. 1")))
    paper = Paper(name="p", title="P", setup=lambda order: order, experiments=(bare, full))
    assert (paper.plans(Order()), paper.remarks(Order(), Order())) == ({}, [])
    tables = paper.tables(Order(), Records({}))
    assert (list(tables), list(paper.published_tables()), paper.checks(tables)) == (["t", "u"], ["u"], [])


@pytest.mark.parametrize("paper", PAPERS.values(), ids=PAPERS)
def test_every_paper_has_each_table_once_and_published_rows_have_its_keys(paper: Paper[Any]) -> None:
    assert len(paper.keys) == len(paper.experiments)
    for table, rows in paper.published_tables().items():
        for row in rows:
            assert set(row) == {"claim", "source"} or set(paper.keys[table]) < set(row)


def test_papers_are_found_by_name() -> None:
    for name, paper in PAPERS.items():
        assert find_paper(name) is paper
        assert paper.name == name
        assert paper.title


def test_an_unknown_paper_is_one_sentence() -> None:
    with pytest.raises(
        InvalidValue, match=r"There is no paper named `polarisation-network`. Did you mean `polarization-network`\?"
    ):
        find_paper("polarisation-network")


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"steps": 0}, "The `steps` of Order must be at least 1. Got 0 instead."),
        ({"seed": -1}, "The `seed` of Order must be at least 0. Got -1 instead."),
        ({"scale": "huge"}, "The `scale` of Order must be one of 'smoke', 'small' or 'paper'. Got 'huge' instead."),
    ],
)
def test_an_order_is_checked(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidValue, match=sentence):
        Order(**settings)
