"""What is brought to the standard normal law is standard normal, and what is sure has no deviation."""

from __future__ import annotations

import pytest
import scipy.stats
import torch
from torch import Tensor

from leaktight.channels.calibration import deviations, standardise
from leaktight.channels.largest import KeepLargest
from leaktight.channels.noise import AddNoise
from leaktight.core.channel import Belief, Noise, push_all
from leaktight.core.random import stream

MEAN = torch.randn(3000, generator=stream(0, "mean"), dtype=torch.float64)


def laplace(scale: float, rng: torch.Generator) -> Tensor:
    return torch.distributions.Laplace(0.0, scale).icdf(torch.rand(3000, generator=rng, dtype=torch.float64))


def keep(tensor: Tensor, count: int) -> Tensor:
    return torch.where(tensor.abs() >= torch.topk(tensor.abs(), count).values.min(), tensor, 0.0)


def normal(std: float, rng: torch.Generator) -> Tensor:
    return std * torch.randn(3000, generator=rng, dtype=torch.float64)


THIRD = KeepLargest(lambda entries: entries // 3)
CASES = {
    "gaussian": ((AddNoise(std=0.5),), lambda rng: MEAN + normal(0.5, rng)),
    "laplace": ((AddNoise(laplace=0.5),), lambda rng: MEAN + laplace(0.5, rng)),
    "both": ((AddNoise(std=0.5, laplace=0.4),), lambda rng: MEAN + normal(0.5, rng) + laplace(0.4, rng)),
    "ranked": ((AddNoise(std=0.5), THIRD), lambda rng: keep(MEAN + normal(0.5, rng), 1000)),
    "ranked laplace": ((AddNoise(laplace=0.5), THIRD), lambda rng: keep(MEAN + laplace(0.5, rng), 1000)),
    "hidden": ((THIRD, AddNoise(std=0.5)), lambda rng: keep(MEAN, 1000) + normal(0.5, rng)),
    "hidden by laplace": ((THIRD, AddNoise(laplace=0.5)), lambda rng: keep(MEAN, 1000) + laplace(0.5, rng)),
}


@pytest.mark.parametrize(("stages", "draw"), CASES.values(), ids=CASES)
def test_true_messages_are_standard_normal(stages, draw) -> None:
    belief = push_all(stages, Belief({"weight": MEAN}))
    rng = stream(1, "draws")
    numbers = torch.cat([standardise(belief, {"weight": draw(rng)}, rng)["weight"] for _ in range(5)])
    assert scipy.stats.kstest(numbers, "norm").pvalue > 1e-3


@pytest.mark.parametrize(("stages", "draw"), CASES.values(), ids=CASES)
def test_messages_of_another_mean_are_not(stages, draw) -> None:
    belief = push_all(stages, Belief({"weight": MEAN.flip(0)}))
    rng = stream(2, "draws")
    numbers = standardise(belief, {"weight": draw(rng)}, rng)["weight"]
    assert scipy.stats.kstest(numbers, "norm").pvalue < 1e-9


def test_noise_along_rows_becomes_white() -> None:
    rng = stream(3, "rows")
    along = torch.randn(2000, 4, generator=rng, dtype=torch.float64)
    for variance in (0.0, 0.3):
        noise = along * torch.randn(2000, 1, generator=rng, dtype=torch.float64)
        noise = noise + variance**0.5 * torch.randn(2000, 4, generator=rng, dtype=torch.float64)
        belief = Belief({"cut": torch.zeros(2000, 4)}, {"cut": Noise(torch.full((2000, 1), variance), along=along)})
        numbers = standardise(belief, {"cut": noise}, rng)["cut"]
        assert int(numbers.isfinite().sum()) == (8000 if variance else 2000)
        assert scipy.stats.kstest(numbers[numbers.isfinite()], "norm").pvalue > 1e-3
        assert float(deviations(belief, {"cut": noise})["cut"].max()) < 1e-12
    across = torch.ones(2000, 4, dtype=torch.float64)
    belief = Belief({"cut": torch.zeros(2000, 4)}, {"cut": Noise(0.0, along=along)})
    assert float(deviations(belief, {"cut": across})["cut"].max()) > 0.1


def test_what_is_sure() -> None:
    belief = KeepLargest(lambda entries: 2).push(Belief({"weight": torch.tensor([3.0, -1.0, 2.0, 0.5])}))
    sent = torch.tensor([3.0, 0.0, 2.0, 0.0])
    assert deviations(belief, {"weight": sent})["weight"].tolist() == [0.0] * 4
    assert deviations(belief, {"weight": torch.tensor([3.5, 0.0, 0.75, 0.0])})["weight"].tolist() == [
        0.5,
        0.25,
        1.25,
        0.0,
    ]


def test_nothing_random_is_nothing_to_standardise() -> None:
    belief = Belief({"weight": torch.zeros(3)})
    assert standardise(belief, {"weight": torch.zeros(3)}, stream(0))["weight"].isnan().all()


def test_approximations_are_not_claimed_to_be_calibrated() -> None:
    belief = push_all((AddNoise(std=0.5), THIRD, AddNoise(std=0.5)), Belief({"weight": MEAN}))
    assert standardise(belief, {"weight": MEAN}, stream(0))["weight"].isnan().all()
