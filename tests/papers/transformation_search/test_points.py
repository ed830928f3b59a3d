from __future__ import annotations

from pathlib import Path

import pytest
import torch

from leaktight.core.defence import Undefended
from leaktight.data import TestPart
from leaktight.defences import Transformation
from leaktight.learning import Federated
from leaktight.models import Factory, LeNet
from leaktight.papers import Order, Tables
from leaktight.papers.paper import Plans
from leaktight.papers.row import number, rows_where
from leaktight.papers.transformation_search.points import (
    _scenario,
    attack_label,
    compared_draws,
    distinct_functions,
    score_label,
)
from leaktight.papers.transformation_search.scales import Study, study_of
from leaktight.papers.transformation_search.searches import make_search
from leaktight.probes import Counterfactual, PrivacyScore
from leaktight.search.material import material, semi_train
from leaktight.transforms.policy import Policy


def test_random_policies_are_attacked_on_two_models_and_scored_by_both_cosines(plans: Plans, study: Study) -> None:
    scores, untrained = plans["cifar10-lenet-scores"], plans["cifar10-lenet-scores-untrained"]
    policies = [policy for draw in compared_draws(study) for policy in draw]
    assert len(policies) == len(set(policies)) == study.compared
    assert [len(draw) for draw in compared_draws(study)] == [study.compared // 3] * 3
    for plan in (scores, untrained):
        assert (plan.grid.stages, plan.grid.seeds) == (("initial",), (5, 6, 7))
        assert all(isinstance(defence, Undefended) for defence in plan.defences)
        assert len([label for label in plan.probes if label.startswith("attack on")]) == study.compared + 1
    for policy in policies:
        attempt = scores.probes[attack_label(policy)]
        assert isinstance(attempt, Counterfactual)
        assert attempt.defence == Transformation(policy=policy)
        assert untrained.probes[attack_label(policy)] == attempt
        for similarity in ("whole", "per_tensor"):
            wanted = PrivacyScore(policy=policy, samples=study.samples, similarity=similarity)
            assert scores.probes[score_label(policy, similarity)] == wanted
    assert all(score_label(Policy.of(str(index))) in scores.probes for index in distinct_functions())


def test_images_are_of_the_test_part_and_the_model_is_not_trained_further(plans: Plans, study: Study) -> None:
    for name, model in (("scores", Factory), ("scores-untrained", LeNet)):
        [scenario] = plans[f"cifar10-lenet-{name}"].scenarios.values()
        assert isinstance(scenario, Federated)
        assert (scenario.rounds, type(scenario.model)) == (0, model)
        assert scenario.data == TestPart(data=study.focus.data, owned=100)


def test_the_semi_trained_model_is_that_of_the_search(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    study = study_of(Order(steps=1))
    settings = make_search(study, study.focus).model_copy(update={"epochs": 1, "images": 8})
    trained = semi_train(settings, material(settings).task)
    save_file(trained, tmp_path / "model.safetensors")
    scenario = _scenario(study.model_copy(update={"semi_trained": str(tmp_path / "model.safetensors")}), "semi-trained")
    model = scenario.task(scenario.data.load(), 3).model
    known = {tuple(tensor.shape): tensor for tensor in trained.values()}
    assert len(known) > 4
    for tensor in model.tensors().values():
        assert any(torch.equal(tensor, other) for other in trained.values() if other.shape == tensor.shape)


def test_figure_2_has_a_point_for_each_policy_and_correlations_of_them(tables: Tables, study: Study) -> None:
    points = tables["points"]
    names = [str(policy) for draw in compared_draws(study) for policy in draw]
    assert [row["policy"] for row in points] == ["none", *names]
    for row in points:
        score = number(row, "privacy_score")
        assert score is not None
        assert row["privacy_score_per_tensor"] == pytest.approx(score + 0.1)
        assert row["psnr"] == pytest.approx(11 + 5 * score)
        assert row["psnr_untrained"] == pytest.approx(12 + 5 * score)
    rows = tables["correlation"]
    for row in rows:
        # PSNR was answered by a line in the score, that of the original by a falling one.
        assert row["r"] == pytest.approx(-1.0 if row["against"] == "original" else 1.0)
    assert {row["n"] for row in rows_where(rows, draw="all")} == {study.compared}
    assert {row["n"] for row in rows_where(rows, draw=2)} == {study.compared // 3}
    assert len(rows) == 2 * 2 * 3 * 4
