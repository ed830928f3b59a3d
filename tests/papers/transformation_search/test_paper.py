from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from leaktight.core.errors import InvalidValue
from leaktight.papers import Check, Order, Paper, Records, Tables
from leaktight.papers.paper import Plans
from leaktight.papers.row import CLAIM, rows_where
from leaktight.papers.transformation_search import INITIAL, INTERVALS, OTHER, PAPER, PICTURES, TRANSFORMED
from leaktight.papers.transformation_search.defences import NOISE
from leaktight.papers.transformation_search.early import ABOUT
from leaktight.papers.transformation_search.networks import NETWORKS
from leaktight.papers.transformation_search.points import COUNTERFACTUAL
from leaktight.papers.transformation_search.scales import Study, study_of


def test_each_claim_is_checked_once(tables: Tables) -> None:
    names = [check.name for check in PAPER.checks(tables)]
    # Six of Table 1, six of Table 2, two of Table 3, four of Table 4; four correlations; Fig. 1, 3, 5 and twice 6; two
    # of the table `early`; the other network.
    assert len(set(names)) == len(names) == 6 + 6 + 2 + 4 + 4 + 1 + 1 + 1 + 2 + 2 + 1


def test_each_claim_of_the_page_is_judged_by_a_check(tables: Tables) -> None:
    checks = PAPER.checks(tables)
    assert [claim.claim for claim in PAPER.summary.claims if not claim.among(checks)] == []


@pytest.mark.parametrize(
    ("start", "value", "table", "where", "column", "worse"),
    [
        (
            "PSNR(none) - its chance level in dB: the attack works, CIFAR10, L",
            3.1,
            "policies",
            {"policy": "none"},
            "psnr_above_chance",
            -0.1,
        ),
        (
            "PSNR(none) - its chance level in dB: the attack works, CIFAR10, C",
            9.0,
            "networks",
            {"policy": "none"},
            "psnr_above_chance",
            -0.1,
        ),
        (
            "PSNR above chance(none) - that(hybrid) in dB, CIFAR10",
            6.0,
            "policies",
            {"policy": "hybrid"},
            "above_chance_drop",
            1.9,
        ),
        (
            "Accuracy(hybrid) - accuracy(none), CIFAR10",
            0.006,
            "policies",
            {"policy": "hybrid"},
            "accuracy_change",
            -0.011,
        ),
        (
            "PSNR above chance(random) - that(hybrid) in dB, CIFAR10",
            4.0,
            "policies",
            {"policy": "random"},
            "psnr_above_chance",
            -3.0,
        ),
        ("Accuracy(hybrid) - mean accuracy of its two", 0.0, "policies", {"policy": "first"}, "accuracy", 0.7),
        (
            "PSNR above chance(none) - that(hybrid) in dB by Adam+L1",
            6.0,
            "attacks",
            {"attack": "Adam+L1"},
            "above_chance_drop",
            -0.1,
        ),
        (
            "PSNR above chance(lowest of the other defences",
            5.0,
            "defences",
            {"defence": "pruning 99%"},
            "psnr_above_chance",
            -3.5,
        ),
        (
            "Accuracy(hybrid) - accuracy(most accurate",
            0.005,
            "defences",
            {"defence": "Gaussian 0.001"},
            "accuracy",
            0.7,
        ),
        (
            "Transfer: PSNR above chance(none) - that(hybrid)",
            6.0,
            "transfer",
            {"policy": "hybrid"},
            "above_chance_drop",
            -0.1,
        ),
        (
            "Transfer: accuracy(hybrid) - accuracy(none)",
            0.006,
            "transfer",
            {"policy": "hybrid"},
            "accuracy_change",
            -0.071,
        ),
        (
            "PSNR above chance(random) - that(hybrid) in dB, transfer",
            4.0,
            "transfer",
            {"policy": "random"},
            "psnr_above_chance",
            -3.5,
        ),
        (
            "R(privacy score by the cosine whole, PSNR above chance) over policies",
            1.0,
            "correlation",
            {"against": "above chance", "similarity": "whole"},
            "r",
            0.4,
        ),
        (
            "Similarity(none) - similarity(hybrid), first layer",
            0.3,
            "similarity",
            {"policy": "hybrid"},
            "less_similar",
            -0.1,
        ),
    ],
)
def test_a_claim_holds_on_what_was_answered_and_not_on_worse(
    tables: Tables,
    start: str,
    value: float,
    table: str,
    where: dict[str, str],
    column: str,
    worse: float,
    find_check: Callable[..., Check],
    put: Callable[..., None],
) -> None:
    assert find_check(start).value == pytest.approx(value, abs=1e-9)
    put(rows_where(tables[table], **where), column, worse)
    assert not find_check(start).holds


def test_a_claim_that_is_answered_well_holds(find_check: Callable[..., Check]) -> None:
    for start in (
        "PSNR above chance(none) - that(hybrid) in dB, CIFAR10",
        "PSNR above chance(none) - that(hybrid) in dB by SGD+COS",
        "Transfer: PSNR above chance(none)",
    ):
        assert find_check(start).holds
        assert not find_check(start).undecided


@pytest.mark.parametrize(
    ("start", "table", "where"),
    [
        ("PSNR above chance(none) - that(hybrid) in dB, CIFAR10", "policies", {}),
        ("PSNR above chance(none) - that(hybrid) in dB by SGD+COS", "attacks", {"attack": "SGD+COS"}),
        ("Transfer: PSNR above chance(none)", "transfer", {}),
    ],
)
def test_an_attack_that_fails_without_a_policy_says_nothing_of_one(
    tables: Tables,
    start: str,
    table: str,
    where: dict[str, str],
    find_check: Callable[..., Check],
    put: Callable[..., None],
) -> None:
    put(rows_where(tables[table], policy="none", **where), "psnr_above_chance", -0.1)
    assert find_check(start).word == "not measured"
    assert find_check("PSNR above chance(none) - that(hybrid) in dB by Adam+L1").holds


def test_random_policies_must_leave_an_attack_that_works(
    tables: Tables, find_check: Callable[..., Check], put: Callable[..., None]
) -> None:
    start = "PSNR above chance(random) in dB: random policies do not stop the attack, CIFAR10"
    random = rows_where(tables["policies"], policy="random")
    put(random, "psnr_above_chance", 0.5)
    assert find_check(start).holds
    put(random, "psnr_above_chance", -0.5)
    assert not find_check(start).holds


def test_the_headline_is_judged_by_table_1_alone(paper: Paper[Any], tables: Tables) -> None:
    claim = paper.summary.claims[0]
    assert [check.name for check in claim.among(paper.checks(tables))] == [
        "PSNR above chance(none) - that(hybrid) in dB, CIFAR10, LeNet"
    ]


def test_gaps_never_hold(answered: Callable[..., Records], setup: Any) -> None:
    checks = PAPER.checks(PAPER.tables(setup, answered(lambda cell: True)))
    assert checks
    assert not any(check.holds for check in checks)
    assert all(check.value is None for check in checks)


def test_what_is_always_so_is_always_told(study: Study, sets: str) -> None:
    for one in (study, study_of(Order()), study_of(Order(scale="paper", data=sets))):
        assert {INTERVALS, TRANSFORMED, ABOUT, COUNTERFACTUAL, NOISE, PICTURES} <= set(PAPER.remarks(Order(), one))


def test_what_was_searched_comes_first(study: Study) -> None:
    assert PAPER.remarks(Order(), study)[0] == "Searched for cifar10-lenet: 3-1+18-15."


def test_what_is_smaller_than_the_paper_s_is_told(study: Study) -> None:
    told = " ".join(PAPER.remarks(Order(), study))
    assert f"Attacks take {study.attack.iterations} iterations in Tables 1, 3 and 4" in told
    assert "the paper's take 4800, and 2500 in Fig. 2" in told
    assert f"The network is LeNet, after {study.epochs} epochs" in told
    assert INITIAL in told
    assert OTHER in told
    assert NETWORKS in told


def test_at_full_scale_there_is_nothing_smaller(sets: str) -> None:
    told = " ".join(PAPER.remarks(Order(), study_of(Order(scale="paper", data=sets))))
    assert "iterations in Tables" not in told
    assert "The network is" not in told
    assert INITIAL not in told
    assert OTHER not in told
    assert NETWORKS not in told


def test_each_part_has_a_plan_in_a_folder_of_its_own(plans: Plans) -> None:
    assert list(plans) == [
        *(f"cifar10-lenet-{part}" for part in ("policies", "scores", "scores-untrained", "untrained", "attacks")),
        "f-mnist-lenet-transfer",
        *(f"cifar10-lenet-{part}" for part in ("training", "after-0", "after-10", "after-50")),
        "cifar10-convnet-networks",
    ]


def test_nothing_is_planned_before_it_is_searched(order: Order) -> None:
    with pytest.raises(InvalidValue, match="policies of cifar10-lenet must be searched before"):
        PAPER.plans(study_of(order))


@pytest.mark.parametrize(
    "table", ["points", "correlation", "curve", "training", "functions", "similarity", "early", "privacy_aware"]
)
def test_figures_are_told_in_sentences_with_their_source(table: str) -> None:
    rows = PAPER.published_tables()[table]
    assert rows
    for row in rows:
        assert str(row[CLAIM]).endswith(".")
        assert row["source"]


def test_tables_have_their_keys_and_no_row_twice(tables: Tables) -> None:
    assert list(tables) == list(PAPER.keys)
    for name, rows in tables.items():
        keys = [tuple(row[key] for key in PAPER.keys[name]) for row in rows]
        assert rows
        assert len(set(keys)) == len(keys)


def test_what_failed_is_a_gap(answered: Callable[..., Records], setup: Any) -> None:
    gaps = PAPER.tables(setup, answered(lambda cell: True))
    assert {row["psnr"] for name in ("policies", "attacks", "defences", "transfer", "early") for row in gaps[name]} == {
        None
    }
    assert gaps["similarity"] == gaps["training"] == gaps["curve"] == []
    assert {row["rank"] for row in gaps["functions"]} == {None}
    assert {row["with_original"] for row in gaps["privacy_aware"]} == {None}
    assert {row["r"] for row in gaps["correlation"]} == {None}
