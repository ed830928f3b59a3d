from __future__ import annotations

from collections.abc import Callable

import pytest

from leaktight.attacks import Strongest
from leaktight.core.probe import Attempt
from leaktight.core.threat import Knows
from leaktight.learning import Federated
from leaktight.papers import Check, Row, Tables
from leaktight.papers.paper import Plans
from leaktight.papers.row import rows_where
from leaktight.papers.transformation_search.audits import make_strongest
from leaktight.papers.transformation_search.scales import Strength


def test_the_best_attacker_counts_against_the_original(
    tables: Tables, find_check: Callable[..., Check], put: Callable[..., None]
) -> None:
    start, column = "PSNR of the original above chance(none) - that(hybrid)", "psnr_above_chance_original"
    # 2.1 and 6.1 dB above chance without a policy, over seeds; -3.9 and 0.1 with the hybrid.
    assert find_check(start).value == pytest.approx(6.0)
    assert find_check("PSNR of the original above chance(hybrid").value == pytest.approx(0.1)
    put(rows_where(tables["early"], policy="hybrid", steps=0, attack="Adam+Cosine"), column, 5.0)
    assert find_check(start).value == pytest.approx(1.1)
    assert not find_check(start).holds
    # Whoever is the best attacker counts without a policy too.
    put(rows_where(tables["early"], policy="none", steps=0, attack="Adam+Cosine"), column, 8.0)
    assert find_check(start).value == pytest.approx(3.0)


def test_the_strongest_attacker_knows_the_policy_and_public_images_and_the_paper_s_does_not(plans: Plans) -> None:
    for name, rounds, stages in (
        ("after-0", 0, ("initial",)),
        ("after-10", 10, ("end",)),
        ("after-50", 50, ("end",)),
    ):
        plan = plans[f"cifar10-lenet-{name}"]
        [scenario] = plan.scenarios.values()
        assert isinstance(scenario, Federated)
        assert (scenario.rounds, plan.grid.stages) == (rounds, stages)
        assert list(plan.probes) == ["Adam+Cosine", "strongest"]
        for label, probe in plan.probes.items():
            assert isinstance(probe, Attempt)
            assert isinstance(probe.attack, Strongest) is (label == "strongest")
            assert Knows.LABELS in probe.threat.knows
            for thing in (Knows.DEFENCE, Knows.AUXILIARY):
                assert (thing in probe.threat.knows) is (label == "strongest")


def test_the_suite_is_whole_where_attacks_are_long_and_cut_where_they_are_short() -> None:
    whole, cut = (make_strongest(Strength(victims=1, iterations=count)).attack for count in (4800, 40))
    assert isinstance(whole, Strongest)
    assert isinstance(cut, Strongest)
    assert whole.suite() == Strongest().suite()
    assert cut.member("posterior").to_dict()["iterations"] == 30


def test_moments_and_attackers_stand_beside_each_other(tables: Tables) -> None:
    rows = rows_where(tables["early"], policy="hybrid")
    assert [(row["steps"], row["attack"]) for row in rows] == [
        (steps, attack) for steps in (0, 10, 50) for attack in ("Adam+Cosine", "strongest")
    ]
    assert [row["psnr_original"] for row in rows[:2]] == pytest.approx([7.6, 11.6])
    # Before the training there are none and three hybrids; after some steps none and ours alone.
    assert len(tables["early"]) == (4 + 2 + 2) * 2
    assert {row["policy"] for row in tables["early"] if row["steps"]} == {"none", "hybrid"}


def test_what_is_checked_has_three_seeds_and_what_comes_later_one(plans: Plans, only: Callable[..., Row]) -> None:
    seeds = {name: plans[f"cifar10-lenet-{name}"].grid.seeds for name in ("after-0", "after-10", "after-50")}
    assert seeds == {"after-0": (5, 6, 7), "after-10": (5,), "after-50": (5,)}
    # Seeds were answered with a tenth more each: 7.5 under the first.
    before, after = (only("early", policy="hybrid", steps=steps, attack="Adam+Cosine") for steps in (0, 10))
    assert (before["psnr_original"], after["psnr_original"]) == pytest.approx((7.6, 7.5))
