from __future__ import annotations

from collections.abc import Callable

import pytest

from leaktight.attacks import GradientMatching
from leaktight.core.probe import Attempt
from leaktight.core.threat import Knows
from leaktight.papers import Check, Tables
from leaktight.papers.paper import Plans
from leaktight.papers.row import rows_where


def test_the_best_attacker_counts_against_the_original(
    tables: Tables, find_check: Callable[..., Check], put: Callable[..., None]
) -> None:
    start = "PSNR of the original(none) - PSNR of the original(hybrid, best of two attackers)"
    # 13.5 dB without a policy; 7.5 and 11.5 with the hybrid.
    assert find_check(start).value == pytest.approx(2.0)
    put(rows_where(tables["adaptive"], policy="hybrid", attack="Adam+Cosine"), "psnr_original", 12.0)
    assert find_check(start).value == pytest.approx(1.5)
    assert not find_check(start).holds


def test_adaptive_attackers_know_the_policy_and_public_images_and_others_do_not(
    plans: Plans, attack: Callable[..., GradientMatching]
) -> None:
    plan = plans["cifar10-lenet-adaptive"]
    assert list(plan.probes) == ["Adam+Cosine", "ats2021-adaptive"]
    for label, probe in plan.probes.items():
        assert isinstance(probe, Attempt)
        assert (
            (Knows.DEFENCE in probe.threat.knows)
            is (Knows.AUXILIARY in probe.threat.knows)
            is label.startswith("ats2021")
        )
    found = attack(plans, "adaptive", "ats2021-adaptive")
    assert (found.distance, found.initial) == ("likelihood", "class_means")
    # Each outcome is a search of its own, and a search in the prior's coordinates needs no more than the preset has.
    assert found.iterations == min(300, attack(plans, "adaptive", "Adam+Cosine").iterations)


def test_who_knows_the_policy_stands_beside_who_does_not(tables: Tables) -> None:
    rows = rows_where(tables["adaptive"], policy="hybrid")
    assert [row["attack"] for row in rows] == ["Adam+Cosine", "ats2021-adaptive"]
    assert [row["psnr_original"] for row in rows] == pytest.approx([7.5, 11.5])
    assert len(tables["adaptive"]) == 4 * 2
