from __future__ import annotations

from leaktight.core.defence import Undefended
from leaktight.defences import GaussianNoise, LaplaceNoise, Pruning, Transformation
from leaktight.papers.transformation_search.mechanisms import (
    BASELINES,
    all_policies,
    as_defence,
    as_defences,
    known_policies,
    parts_of,
    plain_defence,
    random_policies,
    trained_random_policies,
)
from leaktight.papers.transformation_search.scales import Study
from leaktight.transforms.policy import Policy

HYBRID = Policy.of("3-1+18-15")


def test_random_policies_are_many_and_the_same_every_time() -> None:
    policies = random_policies(60, 0, "compared")
    assert len(set(map(str, policies))) == 60
    assert policies == random_policies(60, 0, "compared")
    assert policies[:20] == random_policies(20, 0, "compared")
    assert {len(branch) for policy in policies for branch in policy.branches} <= {1, 2, 3}
    assert set(policies) != set(random_policies(60, 1, "compared"))
    assert set(policies) != set(random_policies(60, 0, "trained"))


def test_what_was_found_is_two_policies_and_their_hybrid() -> None:
    assert {name: str(one) for name, one in parts_of(HYBRID).items()} == {
        "first": "3-1",
        "second": "18-15",
        "hybrid": "3-1+18-15",
    }
    assert list(parts_of(Policy.of("3"))) == ["first", "hybrid"]


def test_table_1_has_random_searched_and_published_ones(study: Study) -> None:
    policies = all_policies(study, study.focus)
    assert list(policies) == [
        *(f"random {number}" for number in range(1, study.random + 1)),
        "first",
        "second",
        "hybrid",
        "published 3-1-7+43-18-18",
        "published 21-13-3+7-4-15",
    ]
    assert policies.items() >= trained_random_policies(study).items()
    assert list(known_policies(study, study.focus)) == [
        "hybrid",
        "published 3-1-7+43-18-18",
        "published 21-13-3+7-4-15",
    ]


def test_none_is_no_defence_unless_every_training_crops_and_flips(study: Study) -> None:
    augmented = study.model_copy(update={"crop_flip": True})
    assert plain_defence(study) == Undefended()
    assert plain_defence(augmented) == Transformation(crop_flip=True)
    assert as_defence(study, HYBRID) == Transformation(policy=HYBRID)
    assert as_defence(augmented, HYBRID) == Transformation(policy=HYBRID, crop_flip=True)
    assert list(as_defences(study, {"hybrid": HYBRID})) == ["none", "hybrid"]


def test_the_other_defences_are_those_of_table_3() -> None:
    assert list(BASELINES.values()) == [
        Pruning(rate=0.7),
        Pruning(rate=0.95),
        Pruning(rate=0.99),
        LaplaceNoise(scale=0.001),
        LaplaceNoise(scale=0.01),
        GaussianNoise(std=0.001),
        GaussianNoise(std=0.01),
    ]
    assert list(BASELINES)[:4] == ["pruning 70%", "pruning 95%", "pruning 99%", "Laplace 0.001"]
