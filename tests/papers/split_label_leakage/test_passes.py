from __future__ import annotations

from collections.abc import Callable

import pytest

from leaktight.defences.sumkl import SumKL
from leaktight.papers import Check, Row, Tables
from leaktight.papers.paper import Plans
from leaktight.papers.row import number, rows_where
from leaktight.papers.split_label_leakage.scales import Study


def test_every_message_of_every_pass_is_attacked(plans: Plans, study: Study) -> None:
    plan = plans["digits-passes"]
    [scenario] = plan.scenarios.values()
    assert scenario.rounds == study.passes * scenario.steps_per_pass()
    assert plan.grid.victims == "all"
    assert SumKL(bound=0.4, passes=3) in plan.defences


def test_the_strongest_attack_is_followed_over_passes(only: Callable[..., Row]) -> None:
    # Of the answers clustering reads most, 0.05 above the norm, and each pass adds a hundredth.
    for passes in (1, 2, 3):
        plain = only("passes", defence="none", passes=passes)
        assert number(plain, "leak_auc") == pytest.approx(1.05 + passes / 100)
        assert plain["ceiling"] is None
        row = only("passes", defence="sumKL L=0.4", passes=passes)
        assert number(row, "leak_auc") == pytest.approx(0.65 + passes / 100)
        assert number(row, "lost_auc") == pytest.approx(0.04)


def test_the_stated_bound_allows_more_with_every_pass_until_the_last_that_it_is_for(only: Callable[..., Row]) -> None:
    ends = {
        name: [number(only("passes", defence=name, passes=passes), "ceiling") for passes in (1, 3)]
        for name in ("sumKL L=0.4", "sumKL L=0.4 over 3 passes")
    }
    assert ends["sumKL L=0.4"][0] == ends["sumKL L=0.4 over 3 passes"][1] == pytest.approx(0.68)
    assert ends["sumKL L=0.4 over 3 passes"][0] < 0.68 < ends["sumKL L=0.4"][1]


def test_a_bound_holds_where_the_last_pass_is_below_what_one_message_may_leak(
    tables: Tables, find_check: Callable[..., Check]
) -> None:
    start = "Leak AUC of the strongest attack, all 3 passes added up, sumKL L=0.4"
    for name in ("sumKL L=0.4", "sumKL L=0.4 over 3 passes"):
        early, _, last = rows_where(tables["passes"], defence=name)
        early["leak_auc"] = 0.5
        last |= {"leak_auc": 0.69, "leak_auc_low": 0.685, "leak_auc_high": 0.695}
    assert find_check(f"{start}, ").word == "does not hold"
    assert find_check(f"{start} over 3 passes").word == "does not hold"
    last |= {"leak_auc": 0.6, "leak_auc_low": 0.59, "leak_auc_high": 0.61}
    assert find_check(f"{start} over 3 passes").word == "holds"
