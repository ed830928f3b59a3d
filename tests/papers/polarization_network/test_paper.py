from __future__ import annotations

from collections.abc import Callable
from typing import Any

from leaktight.papers import Records, Tables
from leaktight.papers.paper import Plans
from leaktight.papers.polarization_network import PAPER
from leaktight.papers.row import CLAIM


def test_each_claim_is_checked_once(tables: Tables) -> None:
    names = [check.name for check in PAPER.checks(tables)]
    assert len(set(names)) == len(names) == 16
    for name in (*names[:9], *names[-4:]):
        assert name.endswith("digits")


def test_gaps_never_hold(answered: Callable[..., Records], setup: Any) -> None:
    tables = PAPER.tables(setup, answered(lambda cell: True))
    assert not any(check.holds for check in PAPER.checks(tables))


def test_each_part_has_a_plan(plans: Plans) -> None:
    attacks = ["attack-1", "modelled-1", "attack-4", "modelled-4"]
    parts = ["accuracy", *attacks, "alexnet-federated", "alexnet-standalone"]
    assert list(plans) == [f"digits-{part}" for part in parts]
    assert {plan.grid.seeds for plan in plans.values()} == {(5,)}


def test_every_table_is_there_and_has_the_columns_of_ours() -> None:
    tables = PAPER.published_tables()
    keys = PAPER.keys
    assert tables.keys() == keys.keys()
    for name, rows in tables.items():
        assert rows
        for row in rows:
            assert set(row) == {CLAIM, "source"} or set(keys[name]) < set(row)


def test_there_are_six_tables_whose_keys_name_each_row_once(tables: Tables) -> None:
    assert list(tables) == ["ppc", "cap", "accuracy", "federated", "bits", "laplace"]
    for name, rows in tables.items():
        places = [tuple(row[key] for key in PAPER.keys[name]) for row in rows]
        assert len(set(places)) == len(places) > 0
        assert len({tuple(row) for row in rows}) == 1
