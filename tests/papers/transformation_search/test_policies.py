from __future__ import annotations

from collections.abc import Callable

import pytest

from leaktight.core.defence import Undefended
from leaktight.defences import Transformation
from leaktight.papers import Check, Order, Tables
from leaktight.papers.paper import Plans
from leaktight.papers.row import CLAIM, rows_where
from leaktight.papers.transformation_search import PAPER
from leaktight.papers.transformation_search.attacks import TABLE_2
from leaktight.papers.transformation_search.defences import TABLE_3
from leaktight.papers.transformation_search.mechanisms import BASELINES
from leaktight.papers.transformation_search.policies import FOUND, TABLE_1
from leaktight.papers.transformation_search.scales import VARIANTS, Study, study_of
from leaktight.papers.transformation_search.transfer import TABLE_4
from leaktight.transforms.policy import PUBLISHED, Policy

HYBRID = Transformation(policy=Policy.of("3-1+18-15"))


def test_on_fashion_three_points_may_be_lost(
    tables: Tables, find_check: Callable[..., Check], put: Callable[..., None]
) -> None:
    for row in tables["policies"]:
        row["data_set"] = "F-MNIST"
    put(rows_where(tables["policies"], policy="hybrid"), "accuracy_change", -0.029)
    assert find_check("Accuracy(hybrid) - accuracy(none), F-MNIST").holds


def test_tables_1_and_3_train_under_every_policy_and_defence_with_three_seeds(plans: Plans, study: Study) -> None:
    plan = plans["cifar10-lenet-policies"]
    trained = {cell.defence for cell in plan.cells() if cell.purpose == "measure"}
    assert trained >= {Undefended(), HYBRID, *BASELINES.values()}
    # None, the random ones, the two that were found, three hybrids, seven others.
    assert len(trained) == 1 + study.random + 2 + 3 + 7
    assert (plan.grid.seeds, plan.grid.victims, plan.grid.batch_sizes) == ((5, 6, 7), 15, (1,))


def test_tables_1_to_4_are_there_in_full() -> None:
    published = PAPER.published_tables()
    numbers = {name: [row for row in rows if CLAIM not in row] for name, rows in published.items()}
    assert {name: len(rows) for name, rows in numbers.items() if rows} == {
        "policies": 20,
        "attacks": 12,
        "defences": 9,
        "transfer": 8,
    }
    for name, rows in numbers.items():
        for row in rows:
            assert row.keys() >= set(PAPER.keys[name])
    [hybrid] = rows_where(numbers["policies"], data_set="CIFAR100", network="ResNet20", policy="hybrid")
    assert (hybrid["psnr"], hybrid["accuracy"], hybrid["functions"]) == (7.64, 0.7792, "3-1-7+43-18-18")


def test_tables_that_repeat_each_other_agree() -> None:
    """Table 2 and 3 are about CIFAR100 with ResNet20; Table 4 repeats what Table 1 has without a policy."""
    none, *_, hybrid = TABLE_1["CIFAR100", "ResNet20"]
    assert TABLE_2["Adam+Cosine"] == (none[0], hybrid[0])
    assert (TABLE_3["none"], TABLE_3["hybrid"]) == (none, hybrid)
    for network, rows in TABLE_4.items():
        assert rows["none"] == TABLE_1["F-MNIST", network][0]
    assert TABLE_2.keys() == VARIANTS.keys()


def test_policies_are_those_that_the_library_ships() -> None:
    for (data, network), (first, second) in FOUND.items():
        name = f"ats2021-{network.lower()}-{data.lower().replace('f-mnist', 'fashion-mnist')}"
        assert str(PUBLISHED[name]) == f"{first}+{second}"


def test_the_full_experiment_has_a_row_of_ours_for_each_of_table_1(sets: str) -> None:
    study = study_of(Order(scale="paper", data=sets))
    assert {(one.data_set, one.network) for one in study.subjects} == set(TABLE_1)
    assert {one.network for one in study.transfers} == set(TABLE_4)


def test_table_1_has_random_policies_together_and_scores_beside(tables: Tables, study: Study) -> None:
    rows = tables["policies"]
    assert [row["policy"] for row in rows] == [
        "none",
        "random",
        "first",
        "second",
        "hybrid",
        "published 3-1-7+43-18-18",
        "published 21-13-3+7-4-15",
    ]
    [random], [hybrid], [none] = (rows_where(rows, policy=name) for name in ("random", "hybrid", "none"))
    assert (random["trainings"], hybrid["trainings"]) == (3 * study.random, 3)
    assert (random["psnr_drop"], hybrid["psnr_drop"], none["psnr_drop"]) == pytest.approx((2.0, 6.0, 0.0))
    assert hybrid["functions"] == "3-1+18-15"
    # (3 + 1 + 18 + 15) / 300, on the semi-trained model, and minus one less on the untrained.
    assert (hybrid["privacy_score"], hybrid["accuracy_score"]) == pytest.approx((37 / 300, -1 - 37 / 300))
    assert none["privacy_score"] == 0.5
