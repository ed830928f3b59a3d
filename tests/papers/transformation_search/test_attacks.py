from __future__ import annotations

from collections.abc import Callable

import pytest

from leaktight.attacks import GradientMatching
from leaktight.attacks.presets import PRESETS
from leaktight.defences import Transformation
from leaktight.papers import Tables
from leaktight.papers.paper import Plans
from leaktight.papers.row import rows_where
from leaktight.papers.transformation_search.scales import VARIANTS, Study
from leaktight.transforms.policy import Policy

HYBRID = Transformation(policy=Policy.of("3-1+18-15"))


def test_six_attacks_are_the_presets_cut_in_length_alone(
    plans: Plans, study: Study, attack: Callable[..., GradientMatching]
) -> None:
    for name, source in VARIANTS.items():
        found = attack(plans, "attacks", name)
        whole = PRESETS[source]
        assert isinstance(whole, GradientMatching)
        cut = {"iterations", "restarts", "preset", "labels"}
        assert found.model_dump(exclude=cut) == whole.model_dump(exclude=cut)
        long = study.variants.lbfgs if name.startswith("LBFGS") else study.variants.iterations
        assert (found.iterations, found.restarts) == (long, min(whole.restarts, study.variants.restarts))
    assert plans["cifar10-lenet-attacks"].grid.seeds == (5, 6, 7)
    assert {defence for defence in plans["cifar10-lenet-attacks"].defences if isinstance(defence, Transformation)} >= {
        HYBRID
    }


def test_table_2_has_six_attacks_on_three_policies(tables: Tables) -> None:
    rows = tables["attacks"]
    assert [(row["attack"], row["policy"]) for row in rows] == [
        (attack, policy) for attack in VARIANTS for policy in ("none", "random", "hybrid")
    ]
    assert rows_where(rows, attack="SGD+COS", policy="hybrid")[0]["psnr"] == pytest.approx(8.6)
