from __future__ import annotations

from collections.abc import Callable
from typing import Any

from leaktight.papers import Records, Tables
from leaktight.papers.paper import Plans
from leaktight.papers.polarization_network import PAPER
from leaktight.papers.row import CLAIM


def test_each_claim_is_checked_once(tables: Tables) -> None:
    names = [check.name for check in PAPER.checks(tables)]
    assert len(set(names)) == len(names) == 43
    assert [name for name in names if "digits" not in name] == [
        "Accuracy(federated SPN) - Accuracy(FedAvg), the worst of all"
    ]


def test_each_claim_of_the_page_is_judged_by_a_check(tables: Tables) -> None:
    checks = PAPER.checks(tables)
    assert [claim.claim for claim in PAPER.summary.claims if not claim.among(checks)] == []


def test_gaps_never_hold(answered: Callable[..., Records], setup: Any) -> None:
    tables = PAPER.tables(setup, answered(lambda cell: True))
    assert not any(check.holds for check in PAPER.checks(tables))


def test_each_part_has_a_plan(plans: Plans) -> None:
    attacks = ["trained", "attack-1", "attack-4"]
    more = ["cosines", "ablations", "open-linear", "open-head"]
    parts = [*attacks, "alexnet-federated", "alexnet-standalone", *more]
    assert list(plans) == [f"digits-{part}" for part in parts]
    assert {plan.grid.seeds for name, plan in plans.items() if "alexnet" not in name} == {(5,)}


def test_every_table_is_there_and_has_the_columns_of_ours() -> None:
    tables = PAPER.published_tables()
    keys = PAPER.keys
    assert keys.keys() - tables.keys() == {"equal", "left_open", "hardened"}
    for name, rows in tables.items():
        assert rows
        for row in rows:
            assert set(row) == {CLAIM, "source"} or set(keys[name]) < set(row)


def test_the_keys_of_a_table_name_each_row_once(tables: Tables) -> None:
    papers = ["ppc", "cap", "accuracy", "federated", "cosines", "bits", "laplace"]
    assert sorted(tables) == sorted([*papers, "equal", "left_open", "hardened"])
    for name, rows in tables.items():
        places = [tuple(row[key] for key in PAPER.keys[name]) for row in rows]
        assert len(set(places)) == len(places) > 0
        assert len({tuple(row) for row in rows}) == 1
