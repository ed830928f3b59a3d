from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from leaktight.papers import Order, Records, Tables
from leaktight.papers.paper import Plans
from leaktight.papers.row import CLAIM, number, rows_where
from leaktight.papers.split_label_leakage import PAPER

CHECKS = 16


def test_each_claim_is_checked_once_for_each_data_set(tables: Tables) -> None:
    names = [check.name for check in PAPER.checks(tables)]
    assert len(set(names)) == len(names) == CHECKS
    for rows in tables.values():
        rows += [{**row, "data_set": "other"} for row in rows]
    both = names + [name.replace("digits", "other") for name in names]
    assert sorted(check.name for check in PAPER.checks(tables)) == sorted(both)


def test_each_claim_of_the_page_is_judged_by_a_check(tables: Tables) -> None:
    checks = PAPER.checks(tables)
    # The page is about the scale `small`, whose training runs go through the data 20 times.
    last = max(int(number(row, "passes") or 0) for row in tables["passes"])
    claims = [
        claim.model_copy(update={"checks": claim.checks.replace("20 passes", f"{last} passes")})
        for claim in PAPER.summary.claims
    ]
    assert [claim.claim for claim in claims if not claim.among(checks)] == []


def test_gaps_never_hold(answered: Callable[..., Records], setup: Any) -> None:
    tables = PAPER.tables(setup, answered(lambda cell: True))
    checks = PAPER.checks(tables)
    assert len(checks) == CHECKS
    assert not any(check.holds for check in checks)


def test_each_part_has_a_plan(plans: Plans) -> None:
    assert sorted(plans) == ["digits-distributions", "digits-leak", "digits-passes", "digits-steps"]
    assert [plan.grid.seeds for plan in plans.values()] == [(5, 6, 7)] * 4


def test_folders_of_two_data_sets_are_different(sets: str) -> None:
    names = list(PAPER.plans(PAPER.setup(Order(scale="small", data=sets, steps=1))))
    assert len(set(names)) == len(names) == 5 * 3 + 2
    assert all(name == name.lower() and " " not in name and "," not in name for name in names)


def test_figures_are_told_in_sentences_with_their_source() -> None:
    for name, rows in PAPER.published_tables().items():
        if name != "moments":
            assert rows
            for row in rows:
                assert str(row[CLAIM]).endswith(".")
                assert row["source"]


def test_every_table_has_its_keys_once(tables: Tables) -> None:
    assert tables.keys() == PAPER.keys.keys() == PAPER.published_tables().keys()
    for name, rows in tables.items():
        found = [tuple(row[key] for key in PAPER.keys[name]) for row in rows]
        assert rows
        assert len(set(found)) == len(found)


def test_what_failed_leaves_gaps(answered: Callable[..., Records], setup: Any) -> None:
    records = answered(lambda cell: cell.defence.kind == "isotropic_noise" and cell.seed == 6)
    tables = PAPER.tables(setup, records)
    # Two seeds are left; the third has no curve to compare with.
    assert number(rows_where(tables["equal_leak"], attack="gradient norm")[0], "gain") is not None
    [row] = rows_where(tables["trade_off"], defence="isotropic 5")
    assert number(row, "test_auc") == pytest.approx(0.75 - 0.01 + 0.006)
    nothing = PAPER.tables(setup, answered(lambda cell: True))
    assert {name: len(rows) for name, rows in nothing.items()} == {name: len(rows) for name, rows in tables.items()}
    assert all(row["gain"] is None for row in nothing["equal_leak"])
