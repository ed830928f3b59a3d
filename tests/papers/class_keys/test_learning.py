from __future__ import annotations

from collections.abc import Callable

import pytest

from leaktight.defences import ClassKeys
from leaktight.learning import Federated
from leaktight.papers import Check, Tables
from leaktight.papers.class_keys import PAPER
from leaktight.papers.class_keys.learning import EXPERIMENT
from leaktight.papers.class_keys.scales import Scope
from leaktight.papers.paper import Plans
from leaktight.papers.row import rows_where
from leaktight.probes import ParticipantAccuracy, Utility


@pytest.mark.parametrize(
    ("framework", "participants"),
    [("keys of 128", 2), ("keys of 4,096", 2), ("keys of 128, learned layer", 2), ("keys of 4,096", 5)],
)
def test_keys_of_every_length_must_keep_the_accuracy(
    tables: Tables, framework: str, participants: int, find_check: Callable[..., Check]
) -> None:
    start = f"Accuracy({framework}) / accuracy(plain), {participants} participants"
    assert find_check(start).holds
    row = rows_where(tables["learning"], framework=framework, rounds=120, participants=participants)[0]
    row |= {"of_plain": 0.96, "of_plain_low": None, "of_plain_high": None}
    assert not find_check(start).holds


def test_with_one_number_of_participants_there_is_no_plan_for_more(scope: Scope) -> None:
    study = scope.studies[0].model_copy(update={"participants": (2,)})
    assert "digits-participants" not in PAPER.plans(scope.model_copy(update={"studies": (study,)}))


def test_accuracies_are_measured_without_an_attacker(plans: Plans, scenario: Callable[..., Federated]) -> None:
    plan = plans["digits-learning"]
    assert plan.probes == {"utility": Utility(), "participants": ParticipantAccuracy()}
    assert (plan.grid.stages, plan.grid.victims) == (("end",), 2)
    assert plans["digits-participants"].grid.victims == 5
    assert [getattr(each, "rounds", None) for each in plan.scenarios.values()] == [40, 120]
    assert plan.defences == (*(ClassKeys(dimensions=d) for d in (128, 4096)), ClassKeys(dimensions=128, fixed=False))
    assert scenario(plans, "digits-learning").spare_classes == 0
    assert scenario(plans, "digits-participants").participants == 5


def test_accuracies_over_training_are_compared_with_the_plain_framework_seed_by_seed(tables: Tables) -> None:
    rows = rows_where(tables["learning"], framework="keys of 4,096", participants=2)
    assert [row["rounds"] for row in rows] == [40, 120]
    assert rows[0]["accuracy"] == pytest.approx(0.9 + 0.004 - 0.01 + 0.006)
    assert rows[0]["of_plain"] == pytest.approx(0.9 / 0.91, abs=1e-3)
    assert [row["framework"] for row in rows_where(tables["learning"], participants=5)] == ["plain", "keys of 4,096"]


def test_the_mean_accuracy_of_participants_is_what_the_paper_shows(tables: Tables) -> None:
    [row] = rows_where(tables["learning"], framework="plain", participants=2, rounds=120)
    assert row["participants_accuracy"] == pytest.approx(0.9 + 0.012 + 0.006 + 0.05)


def test_on_faces_participants_must_reach_what_they_do_in_the_paper(tables: Tables) -> None:
    rows = [{**row, "data_set": "Olivetti Faces"} for row in tables["learning"]]
    found = [check for check in EXPERIMENT.checks(rows) if check.name.startswith("Mean accuracy of")]
    assert len(found) == 4
    assert all(check.holds for check in found)
    for row in rows:
        row["participants_accuracy"] = 0.94
    assert not any(
        c.holds for c in EXPERIMENT.checks(rows) if c.name.startswith("Mean accuracy of") and not c.undecided
    )
