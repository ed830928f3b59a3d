from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from leaktight.core.record import Cell
from leaktight.papers import Order, Tables
from leaktight.papers.layer_leakage import LayerLeakage
from leaktight.papers.paper import Records
from leaktight.papers.reproduction import Row, number, rows_where

PAPER = LayerLeakage()


@pytest.fixture(scope="module")
def tables(order: Order, answered: Callable[..., Records]) -> Tables:
    return PAPER.tables(order, answered())


def only(tables: Tables, table: str, **wanted: Any) -> Row:
    [row] = rows_where(tables[table], **wanted)
    return row


def test_every_table_has_its_keys_once(tables: Tables) -> None:
    assert list(tables) == list(PAPER.keys)
    # Mixed batches are ours, so that nothing published stands beside them.
    assert [name for name in tables if name != "mixed"] == list(PAPER.published())
    for name, rows in tables.items():
        found = [tuple(row[key] for key in PAPER.keys[name]) for row in rows]
        assert len(set(found)) == len(found) > 0
        assert len({tuple(row) for row in rows}) == 1


def test_a_layer_has_attack_information_sensitivity_and_accuracy(tables: Tables) -> None:
    assert len(tables["layers"]) == 2 * (5 + 11 + 9)
    row = only(tables, "layers", task="gender", network="VGG11Net", layer=9)
    assert row["name"] == "linear1"
    assert number(row, "property_auc") == pytest.approx(0.906)
    assert number(row, "v_information") == pytest.approx(0.406)
    assert number(row, "v_information_share") == pytest.approx(0.812)
    assert number(row, "sensitivity") == pytest.approx(1.0)
    assert number(row, "accuracy") == pytest.approx(0.806)
    # Three seeds, a thousandth apart: Student's t with two degrees of freedom is 4.303.
    low, high = number(row, "property_auc_low"), number(row, "property_auc_high")
    assert low is not None
    assert high is not None
    assert high - low == pytest.approx(2 * 4.3027 * 0.001 / 3**0.5, rel=1e-3)


def test_correlations_are_over_layers_and_subjects(tables: Tables) -> None:
    counts = [(row["network"], row["measure"], row["n"]) for row in tables["correlation"]]
    assert counts == [
        (network, measure, 2 * layers)
        for network, layers in (("AlexNet", 5), ("VGG11Net", 11), ("FCNet", 9), ("All", 25))
        for measure in ("V-information", "sensitivity")
    ]
    # V-information was answered with the AUC less a half, sensitivity with a square.
    for row in rows_where(tables["correlation"], measure="V-information"):
        assert number(row, "r") == pytest.approx(1.0)
    rows = rows_where(tables["layers"], network="AlexNet")
    pairs = [[number(row, name) for row in rows] for name in ("sensitivity", "property_auc")]
    row = only(tables, "correlation", network="AlexNet", measure="sensitivity")
    assert number(row, "r") == pytest.approx(np.corrcoef(*pairs)[0, 1])
    assert (number(row, "r_low") or 0) < (number(row, "r") or 0) < (number(row, "r_high") or 0)


def test_mixed_batches_have_attack_and_information_of_their_own(tables: Tables) -> None:
    found = dict.fromkeys((row["network"], row["task"]) for row in tables["mixed"])
    assert list(found) == [(network, task) for network in ("AlexNet", "VGG11Net") for task in ("gender", "glasses")]
    assert len(tables["mixed"]) == 2 * (5 + 11)
    row = only(tables, "mixed", task="gender", network="VGG11Net", layer=9)
    assert (row["name"], row["share"]) == ("linear1", 0.5)
    # Mixed batches were answered with 0.2 less than pure ones.
    assert (number(row, "property_auc"), number(row, "v_information")) == pytest.approx((0.706, 0.206))
    assert number(row, "v_information_share") == pytest.approx(0.412)


def test_each_network_has_its_own_correlation_of_mixed_batches(order: Order, answered: Callable[..., Records]) -> None:
    def fails(cell: Cell) -> bool:
        told = cell.scenario.to_dict()
        return cell.label == "V-information" and told["model"]["kind"] == "vgg11net" and told["schedule"]["share"] < 1

    tables = PAPER.tables(order, answered(fails))
    assert all(number(row, "r") == pytest.approx(1.0) for row in rows_where(tables["mixed"], network="AlexNet"))
    assert {row["r"] for row in rows_where(tables["mixed"], network="VGG11Net")} == {None}
    assert only(tables, "correlation", network="VGG11Net", measure="V-information")["n"] == 22


def test_each_norm_has_its_own_correlation(tables: Tables) -> None:
    assert len(tables["norms"]) == 3 * len(tables["layers"])
    signs = {norm: {number(row, "r") for row in rows_where(tables["norms"], network="FCNet", norm=norm)} for norm in "F1"}
    assert len(signs["F"]) == len(signs["1"]) == 1
    assert signs["1"] == {-(signs["F"].pop() or 0)}
    row = only(tables, "norms", task="glasses", network="AlexNet", layer=3, norm="infinity")
    assert number(row, "sensitivity") == pytest.approx(10 * 0.81)
    assert row["p"] == only(tables, "correlation", network="AlexNet", measure="sensitivity")["p"]


def test_a_network_stands_beside_the_forest(tables: Tables) -> None:
    forest, network = (
        only(tables, "classifiers", task="gender", layer=4, classifier=name) for name in ("random forest", "network")
    )
    assert (number(forest, "property_auc"), number(network, "property_auc")) == pytest.approx((0.906, 0.886))
    assert number(network, "v_information") == pytest.approx(0.406)
    assert {row["network"] for row in tables["classifiers"]} == {"AlexNet"}


def test_few_entries_stand_beside_all(tables: Tables) -> None:
    few, whole = (only(tables, "entries", task="gender", layer=4, entries=name) for name in ("48 random", "pooled, all"))
    assert (number(few, "property_auc"), number(whole, "property_auc")) == pytest.approx((0.806, 0.906))
    assert (number(few, "v_information"), number(whole, "v_information")) == pytest.approx((0.306, 0.406))


def test_properties_of_one_task_are_told_of_by_what_is_measured_without_the_attack(tables: Tables) -> None:
    assert {(row["task"], row["network"]) for row in tables["properties"]} == {("glasses", "VGG11Net")}
    assert list(dict.fromkeys(row["property"] for row in tables["properties"])) == [
        "gender: Male",
        "age: Senior",
        "hair: black",
    ]
    row = only(tables, "properties", property="age: Senior", layer=9)
    # One seed, so that the interval is the reading's own.
    assert [number(row, f"property_auc{end}") for end in ("", "_low", "_high")] == pytest.approx([0.905, 0.705, 1.105])
    assert number(row, "sensitivity") == pytest.approx(1.0)
    assert (number(row, "r_v_information"), number(row, "r_other")) == pytest.approx((1.0, 1.0))
    assert 0 < (number(row, "r_sensitivity") or 0) < 1
    assert "other" not in row


def test_another_property_s_information_is_that_of_another_subject(order: Order, answered: Callable[..., Records]) -> None:
    def fails(cell: Cell) -> bool:
        return cell.label == "V-information" and cell.scenario.to_dict()["data"].get("private_property") == ["Black"]

    tables = PAPER.tables(order, answered(fails))
    for row in tables["properties"]:
        assert row["r_other"] is None
        assert row["r_v_information"] == pytest.approx(1.0)


def test_tasks_are_all_of_them_on_networks_with_convolutions(tables: Tables) -> None:
    found = dict.fromkeys((row["task"], row["network"]) for row in tables["tasks"])
    assert list(found) == [
        (task, network) for task in ("gender", "glasses", "race", "hair", "age") for network in ("AlexNet", "VGG11Net")
    ]
    row = only(tables, "tasks", task="age", network="AlexNet", layer=5)
    assert (number(row, "share"), number(row, "accuracy")) == pytest.approx((0.09, 0.805))


def test_information_has_both_bounds(tables: Tables) -> None:
    row = only(tables, "mutual_information", task="gender", network="FCNet", layer=2)
    assert (number(row, "upper_share"), number(row, "lower_share")) == pytest.approx((0.9, 0.8))


def test_inversion_says_how_many_numbers_there_are(tables: Tables) -> None:
    assert [row["layers"] for row in tables["inversion"]][:8] == [str(at) for at in range(1, 9)]
    first, second, whole = (only(tables, "inversion", layers=layers) for layers in ("1", "2", "1-8"))
    # 12 filters of 3 x 5 x 5, and of 12 x 5 x 5; pictures here are 16x16, and so 12 x 4 x 4 go into the head of six classes.
    assert [row["numbers"] for row in (first, second)] == [12 * 75 + 12, 12 * 300 + 12]
    assert whole["numbers"] == 912 + 6 * 3612 + 6 * 192 + 6
    assert first["pixels"] == 768
    assert (number(first, "rmse_relative"), number(first, "psnr")) == pytest.approx((0.8, 12.5))
    assert number(whole, "rmse_relative_low") == pytest.approx(0.05)


def test_what_failed_leaves_gaps_and_no_other_numbers(order: Order, tables: Tables, answered: Callable[..., Records]) -> None:
    nothing = PAPER.tables(order, answered(lambda cell: True))
    assert {name: len(rows) for name, rows in nothing.items()} == {name: len(rows) for name, rows in tables.items()}
    assert all(row["property_auc"] is None and row["accuracy"] is None for row in nothing["layers"])
    assert {(row["r"], row["n"]) for row in nothing["correlation"]} == {(None, 0)}
    some = PAPER.tables(order, answered(lambda cell: cell.label == "sensitivity"))
    assert only(some, "correlation", network="All", measure="sensitivity")["r"] is None
    assert only(some, "correlation", network="All", measure="V-information")["n"] == 50
