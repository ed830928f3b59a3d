from __future__ import annotations

from collections.abc import Callable

import pytest

from leaktight.attacks.property_inference import PropertyInference
from leaktight.core.probe import Attempt
from leaktight.papers import Check, Row, Tables
from leaktight.papers.paper import Plans
from leaktight.papers.row import number, rows_where
from leaktight.probes import VInformation


def test_the_forest_must_not_be_worse_than_the_network(tables: Tables, find_check: Callable[..., Check]) -> None:
    start, end = (
        "Property AUC(random forest) - property AUC(network), mean over layers",
        "LFW, gender, race: Black, AlexNet",
    )
    assert find_check(start, end).value == pytest.approx(0.02)
    for row in rows_where(tables["classifiers"], classifier="network", layer=1):
        row["property_auc"] = 0.99
    assert find_check(start, end).value == pytest.approx(0.02 - (0.99 - 0.766) / 5)
    assert not find_check(start, end).holds


def test_other_attackers_differ_in_one_thing_each(plans: Plans) -> None:
    plan = plans["lfw-gender-race-black-compared"]
    assert list(plan.scenarios) == ["AlexNet"]
    network, entries = (plan.probes[name] for name in ("network", "random entries"))
    assert isinstance(network, Attempt)
    assert isinstance(entries, Attempt)
    assert network.attack == PropertyInference(classifier="network", layers="each", gradients=128)
    assert entries.attack == PropertyInference(layers="each", gradients=128, entries=48)
    information = plan.probes["V-information, network"]
    assert isinstance(information, VInformation)
    assert (information.families, information.entries) == (("network",), None)
    assert plan.probes["V-information, random entries"] == information.model_copy(
        update={"families": ("random_forest",), "entries": 48}
    )


def test_a_network_stands_beside_the_forest(tables: Tables, only: Callable[..., Row]) -> None:
    forest, network = (
        only("classifiers", task="gender", layer=4, classifier=name) for name in ("random forest", "network")
    )
    assert (number(forest, "property_auc"), number(network, "property_auc")) == pytest.approx((0.906, 0.886))
    assert number(network, "v_information") == pytest.approx(0.406)
    assert {row["network"] for row in tables["classifiers"]} == {"AlexNet"}
