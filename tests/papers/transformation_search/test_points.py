from __future__ import annotations

import pytest

from leaktight.core.defence import Undefended
from leaktight.defences import Transformation
from leaktight.papers import Tables
from leaktight.papers.paper import Plans
from leaktight.papers.row import number
from leaktight.papers.transformation_search.points import (
    attack_label,
    compared_policies,
    distinct_functions,
    score_label,
)
from leaktight.papers.transformation_search.scales import Study
from leaktight.probes import Counterfactual, PrivacyScore
from leaktight.transforms.policy import Policy


def test_random_policies_and_functions_are_scored_on_one_model_at_three_stages(plans: Plans, study: Study) -> None:
    plan = plans["cifar10-lenet-scores"]
    assert plan.grid.stages == ("initial", "early", "end")
    assert all(isinstance(defence, Undefended) for defence in plan.defences)
    for policy in compared_policies(study):
        score, attempt = plan.probes[score_label(policy)], plan.probes[attack_label(policy)]
        assert score == PrivacyScore(policy=policy, samples=study.samples)
        assert isinstance(attempt, Counterfactual)
        assert attempt.defence == Transformation(policy=policy)
    assert all(score_label(Policy.of(str(index))) in plan.probes for index in distinct_functions())
    assert len([label for label in plan.probes if label.startswith("attack on")]) == study.compared + 1


def test_figure_2_has_a_point_for_each_policy_and_correlations_of_them(tables: Tables, study: Study) -> None:
    points = tables["points"]
    assert [row["policy"] for row in points] == ["none", *map(str, compared_policies(study))]
    for row in points:
        score = number(row, "privacy_score")
        assert score is not None
        assert row["privacy_score_trained"] == pytest.approx(score + 0.1)
        assert row["psnr_trained"] == pytest.approx(11 + 5 * score)
        assert row["psnr_untrained"] == pytest.approx(12 + 5 * score)
    for row in tables["correlation"]:
        # PSNR was answered by a line in the score, that of the original by a falling one.
        assert row["r"] == pytest.approx(1.0 if row["against"] == "transformed" else -1.0)
        assert row["n"] == study.compared
    assert len(tables["correlation"]) == 2 * 3 * 3
