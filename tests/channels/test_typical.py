"""A typical draw has the moments of the noise, and is the same each time."""

from __future__ import annotations

import pytest
import torch

from leaktight.channels.noise import AddNoise
from leaktight.channels.typical import typical
from leaktight.core.channel import Belief, Noise


@pytest.mark.parametrize(
    "noise", [Noise(variance=4.0), Noise(laplace=2.0**0.5), Noise(variance=2.0, laplace=1.0)], ids=str
)
def test_it_has_the_moments_of_the_law(noise: Noise) -> None:
    belief = Belief({"weight": torch.full((40, 50), 3.0)}, {"weight": noise})
    draw = typical(belief, "weight")
    assert torch.equal(draw, typical(belief, "weight"))
    assert float(draw.mean()) == pytest.approx(3.0, abs=0.02)
    assert float(draw.var()) == pytest.approx(4.0, rel=0.03)


def test_without_noise_it_is_the_mean() -> None:
    assert typical(Belief({"weight": torch.tensor([1.0, 2.0])}), "weight").tolist() == [1.0, 2.0]


def test_it_follows_the_mean() -> None:
    def total(mean: torch.Tensor) -> torch.Tensor:
        return typical(AddNoise(std=1.0).push(Belief({"weight": mean})), "weight").sum()

    assert torch.func.grad(total)(torch.zeros(3)).tolist() == [1.0, 1.0, 1.0]
