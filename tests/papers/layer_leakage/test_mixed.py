from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from leaktight.core.record import Cell
from leaktight.learning.schedule import ByProperty
from leaktight.papers import Check, Records, Row, Tables
from leaktight.papers.layer_leakage import PAPER
from leaktight.papers.layer_leakage.audits import REST
from leaktight.papers.paper import Plans
from leaktight.papers.row import number, rows_where


@pytest.mark.parametrize("network", ["AlexNet", "VGG11Net"])
def test_v_information_must_go_along_with_the_attack_on_mixed_batches(
    tables: Tables, network: str, find_check: Callable[..., Check]
) -> None:
    start = f"R(V-information, property AUC) of mixed batches, {network}"
    assert find_check(start).holds
    for row in rows_where(tables["mixed"], network=network):
        row |= {"r": 0.5, "r_low": 0.4, "r_high": 0.6}
    assert not find_check(start).holds


def test_mixed_batches_differ_in_nothing_else(plans: Plans) -> None:
    pure, mixed = plans["lfw-gender-race-black-leak"], plans["lfw-gender-race-black-mixed"]
    # What remains of sealed layers is asked of pure batches alone.
    assert mixed.grid == pure.grid
    assert mixed.probes == {name: probe for name, probe in pure.probes.items() if name != REST}
    assert mixed.probes
    assert list(mixed.scenarios) == ["AlexNet", "VGG11Net"]
    for name, scenario in mixed.scenarios.items():
        assert scenario == pure.scenarios[name].model_copy(update={"schedule": ByProperty(every=2, share=0.5)})


def test_mixed_batches_have_attack_and_information_of_their_own(tables: Tables, only: Callable[..., Row]) -> None:
    found = dict.fromkeys((row["network"], row["task"]) for row in tables["mixed"])
    assert list(found) == [(network, task) for network in ("AlexNet", "VGG11Net") for task in ("gender", "glasses")]
    assert len(tables["mixed"]) == 2 * (5 + 11)
    row = only("mixed", task="gender", network="VGG11Net", layer=9)
    assert (row["name"], row["share"]) == ("linear1", 0.5)
    # Mixed batches were answered with 0.2 less than pure ones.
    assert (number(row, "property_auc"), number(row, "v_information")) == pytest.approx((0.706, 0.206))
    assert number(row, "v_information_share") == pytest.approx(0.412)


def test_each_network_has_its_own_correlation_of_mixed_batches(
    answered: Callable[..., Records], setup: Any, only: Callable[..., Row]
) -> None:
    def fails(cell: Cell) -> bool:
        told = cell.scenario.to_dict()
        return cell.label == "V-information" and told["model"]["kind"] == "vgg11net" and told["schedule"]["share"] < 1

    tables = PAPER.tables(setup, answered(fails))
    assert all(number(row, "r") == pytest.approx(1.0) for row in rows_where(tables["mixed"], network="AlexNet"))
    assert {row["r"] for row in rows_where(tables["mixed"], network="VGG11Net")} == {None}
    assert only("correlation", network="VGG11Net", measure="V-information")["n"] == 22
