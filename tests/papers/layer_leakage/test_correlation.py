from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from leaktight.papers import Check, Order, Row, Tables
from leaktight.papers.layer_leakage import PAPER
from leaktight.papers.layer_leakage.correlation import TABLE_1
from leaktight.papers.layer_leakage.scales import study_of
from leaktight.papers.row import number, rows_where


@pytest.mark.parametrize("network", ["AlexNet", "VGG11Net", "FCNet", "all networks"])
def test_v_information_must_go_along_with_the_attack(
    tables: Tables, network: str, find_check: Callable[..., Check]
) -> None:
    start = f"R(V-information, property AUC), {network}"
    assert find_check(start).holds
    [row] = rows_where(
        tables["correlation"], network="All" if network == "all networks" else network, measure="V-information"
    )
    row |= {"r": 0.89, "r_low": 0.8, "r_high": 0.95}
    assert find_check(start) == Check(
        name=start, value=0.89, expected="at least 0.9", holds=False, low=0.8, high=0.95, undecided=True
    )


@pytest.mark.parametrize(
    ("network", "where", "holds"),
    [
        ("AlexNet", "", (False, True)),
        ("VGG11Net", "", (False, True)),
        ("FCNet", " without convolutions", (True, False)),
    ],
)
def test_sensitivity_must_go_along_where_there_are_convolutions_and_only_there(
    tables: Tables, network: str, where: str, holds: tuple[bool, bool], find_check: Callable[..., Check]
) -> None:
    [row] = rows_where(tables["correlation"], network=network, measure="sensitivity")
    for value, expected in zip((0.4, 0.6), holds, strict=True):
        row["r"] = value
        assert find_check(f"R(sensitivity, property AUC){where}, {network}").holds is expected


def test_the_claim_about_convolutions_is_judged_by_networks_that_have_some(tables: Tables) -> None:
    [claim] = [claim for claim in PAPER.summary.claims if claim.checks.startswith("R(sensitivity")]
    judged = [check.name.rpartition(", ")[2] for check in claim.among(PAPER.checks(tables))]
    assert judged == ["AlexNet", "VGG11Net"]


def test_table_1_is_there_in_full() -> None:
    rows = PAPER.published_tables()["correlation"]
    assert len(rows) == 8
    assert rows_where(rows, network="VGG11Net", measure="sensitivity") == [
        {"network": "VGG11Net", "measure": "sensitivity", "r": 0.686, "t": 5.25, "p": "<0.001"}
    ]
    assert [row["r"] for row in rows_where(rows, measure="V-information")] == [0.959, 0.952, 0.965, 0.951]
    assert [row["p"] for row in rows_where(rows, measure="sensitivity")] == [0.003, "<0.001", 0.472, 0.008]


def test_its_rows_stand_beside_ours(sets: str) -> None:
    networks = study_of(Order(scale="small", data=sets)).networks
    assert [*networks, "All"] == list(TABLE_1)
    assert all(row.keys() >= set(PAPER.keys["correlation"]) for row in PAPER.published_tables()["correlation"])


def test_correlations_are_over_layers_and_subjects(tables: Tables, only: Callable[..., Row]) -> None:
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
    row = only("correlation", network="AlexNet", measure="sensitivity")
    assert number(row, "r") == pytest.approx(np.corrcoef(*pairs)[0, 1])
    assert (number(row, "r_low") or 0) < (number(row, "r") or 0) < (number(row, "r_high") or 0)
