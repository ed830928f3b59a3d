from __future__ import annotations

from collections.abc import Callable

import pytest

from leaktight.learning import Federated, FedSGD
from leaktight.papers import Check, Tables
from leaktight.papers.paper import Plans
from leaktight.papers.polarization_network.scales import Study
from leaktight.papers.row import rows_where


def test_gradients_are_looked_at_over_training_at_the_size_of_its_batches(plans: Plans, study: Study) -> None:
    plan = plans["digits-cosines"]
    [scenario] = plan.scenarios.values()
    assert isinstance(scenario, Federated)
    assert (scenario.rounds, scenario.observed) == (study.rounds, FedSGD())
    assert plan.grid.stages == ("initial", "early", "end")
    assert plan.grid.batch_sizes == (study.batch_size,)


def test_there_is_a_row_for_each_tensor_of_the_body_and_none_for_the_head(tables: Tables) -> None:
    rows = tables["cosines"]
    assert [row["cosine"] for row in rows_where(rows, tensor="body.conv1.weight")] == [0.05, 0.2, 0.3]
    assert not [row for row in rows if str(row["tensor"]).startswith("head")]


def test_losses_must_pull_the_same_way_at_each_stage(tables: Tables, find_check: Callable[..., Check]) -> None:
    name = "Cosine of the public and the private gradient, mean over tensors, digits"
    assert find_check(f"{name}, end").value == pytest.approx(0.3)
    assert find_check(f"{name}, end").holds
    assert find_check(f"{name}, initial").undecided
    for row in rows_where(tables["cosines"], stage="end"):
        row |= {"cosine": -0.2, "cosine_low": -0.3, "cosine_high": -0.1}
    assert not find_check(f"{name}, end").holds
