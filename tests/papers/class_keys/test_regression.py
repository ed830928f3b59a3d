from __future__ import annotations

from collections.abc import Callable

import pytest

from leaktight.defences import ClassKeys
from leaktight.learning import Federated, FedSGD
from leaktight.models import ResNet10
from leaktight.papers import Check, Tables
from leaktight.papers.paper import Plans
from leaktight.papers.row import number


def test_regression_must_come_near_cross_entropy(tables: Tables, find_check: Callable[..., Check]) -> None:
    tables["regression"][0]["of_entropy"] = 0.5
    assert not find_check("Accuracy(keys) / accuracy(cross entropy)").holds


def test_table_1_is_trained_in_one_place(plans: Plans, scenario: Callable[..., Federated]) -> None:
    found = scenario(plans, "digits-central")
    assert isinstance(found.protocol, FedSGD)
    assert (found.participants, found.rounds) == (1, 150)
    # Both arms score by cosines of features that tanh made, the one with fixed weights at right angles.
    assert found.model == ResNet10(width=4, end="tanh", head="cosine")
    assert plans["digits-central"].defences == (ClassKeys(dimensions=32, direct=True, orthonormal=True),)


def test_both_objectives_are_there(tables: Tables) -> None:
    regression, entropy = tables["regression"]
    assert (regression["objective"], entropy["objective"]) == ("key-based regression", "cross entropy")
    assert entropy["of_entropy"] == pytest.approx(1)
    assert (number(regression, "of_entropy") or 0) < 1
