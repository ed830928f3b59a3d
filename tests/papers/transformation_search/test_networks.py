from __future__ import annotations

from collections.abc import Callable

import pytest

from leaktight.core.defence import Undefended
from leaktight.learning import Federated
from leaktight.models import ConvNet
from leaktight.papers import Check, Tables
from leaktight.papers.paper import Plans
from leaktight.papers.row import number, rows_where
from leaktight.papers.transformation_search.points import attack_label
from leaktight.papers.transformation_search.scales import Study
from leaktight.transforms.policy import Policy


def test_an_attack_whose_interval_holds_chance_is_not_known_to_work(
    tables: Tables, find_check: Callable[..., Check]
) -> None:
    start = "PSNR(none) - its chance level in dB: the attack works, CIFAR10, C"
    assert not find_check(start).undecided
    rows_where(tables["networks"], policy="none")[0]["psnr_above_chance_low"] = -0.1
    assert find_check(start).undecided


def test_published_policies_are_attacked_on_the_paper_s_second_network(plans: Plans, study: Study) -> None:
    plan = plans["cifar10-convnet-networks"]
    [scenario] = plan.scenarios.values()
    assert isinstance(scenario, Federated)
    assert scenario.model == ConvNet(width=8)
    assert {cell.defence for cell in plan.cells() if cell.purpose == "measure"} == {Undefended()}
    parts = [None, *map(Policy.of, ("3-1-7", "43-18-18", "21-13-3", "7-4-15"))]
    assert list(plan.probes) == [attack_label(policy) for policy in parts]
    assert (plan.grid.stages, plan.grid.victims) == (("end",), study.other_attack.victims)
    assert plan.grid.seeds == (5, 6, 7)


def test_published_policies_on_the_other_network_have_their_chance_beside(tables: Tables) -> None:
    rows = tables["networks"]
    assert [row["policy"] for row in rows] == ["none", "3-1-7", "43-18-18", "21-13-3", "7-4-15"]
    assert {row["network"] for row in rows} == {"ConvNet"}
    # Twice the PSNR less 18 dB above it.
    for row in rows:
        psnr, chance = (number(row, column) for column in ("psnr", "chance"))
        assert psnr is not None
        assert chance == pytest.approx(18 - psnr)
    assert rows[0]["psnr"] == pytest.approx(13.5)
