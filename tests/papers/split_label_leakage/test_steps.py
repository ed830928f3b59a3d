from __future__ import annotations

from collections.abc import Callable

import pytest

from leaktight.data import HeldOut
from leaktight.learning import Split
from leaktight.papers import Check, Records, Row, Tables
from leaktight.papers.paper import Plans
from leaktight.papers.row import number, rows_where
from leaktight.papers.split_label_leakage import PAPER, steps
from leaktight.papers.split_label_leakage.scales import Study
from leaktight.probes import Utility


def test_the_chosen_number_of_steps_must_be_as_good_as_the_best(
    tables: Tables, find_check: Callable[..., Check]
) -> None:
    start = "Held-out AUC"
    assert find_check(start).value == pytest.approx(0)
    rows_where(tables["steps"], steps=10)[0]["held_out_auc"] = 0.75
    assert not find_check(start).holds
    tables["steps"] = []
    assert len(PAPER.checks(tables)) == 15


def test_the_number_of_steps_is_chosen_on_held_out_training_rows(plans: Plans, study: Study) -> None:
    plan = plans["digits-steps"]
    assert plan.probes == {"utility": Utility()}
    assert plan.defences == ()
    for scenario, count in zip(plan.scenarios.values(), study.candidates, strict=True):
        assert isinstance(scenario, Split)
        assert (scenario.data, scenario.rounds) == (HeldOut(data=study.data), count)


def test_the_chosen_number_of_steps_is_marked(tables: Tables, only: Callable[..., Row]) -> None:
    assert [(row["steps"], row["chosen"]) for row in tables["steps"]] == [(10, False), (30, True)]
    assert number(only("steps", steps=30), "held_out_auc") == pytest.approx(0.703)


def test_a_study_without_candidates_has_no_steps(study: Study, answered: Callable[..., Records]) -> None:
    bare = study.model_copy(update={"candidates": ()})
    assert (steps.plans([bare]), steps.rows([bare], answered())) == ({}, [])
