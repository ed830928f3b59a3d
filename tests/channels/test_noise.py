"""Noise adds up, and of a mean over examples it is less."""

from __future__ import annotations

import pytest
import torch

from leaktight.channels.noise import AddNoise, StatedNoise
from leaktight.core.channel import Belief, Noise, push_all


def test_variances_add_and_scales_stay() -> None:
    belief = push_all((AddNoise(std=3.0), AddNoise(std=4.0), AddNoise(laplace=0.5)), Belief({"weight": torch.zeros(2)}))
    assert belief.noise_of("weight") == Noise(25.0, 0.5)


def test_of_a_sum_over_examples_a_mean_has_its_part() -> None:
    belief = AddNoise(std=3.0, laplace=1.5, per_example=True).push(Belief({"weight": torch.zeros(2)}, examples=3))
    assert belief.noise_of("weight").variance == pytest.approx(1.0)
    assert belief.noise_of("weight").laplace == pytest.approx(0.5)


def test_means_are_left_alone() -> None:
    means = {"weight": torch.ones(2)}
    assert AddNoise(std=1.0).push(Belief(means)).means is means


def test_each_tensor_may_have_its_own() -> None:
    before = Belief({"cut": torch.zeros(2, 3), "other": torch.zeros(2)}, {"other": Noise(1.0)})
    along = torch.ones(2, 3)
    after = StatedNoise({"cut": Noise(4.0, along=along)}).push(before)
    assert after.noise_of("other") == Noise(1.0)
    assert after.noise_of("cut").variance == 4.0
    assert after.noise_of("cut").along is along
