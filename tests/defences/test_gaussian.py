"""Gaussian noise: its scale, its shape, its stream."""

from __future__ import annotations

import pytest
import torch
from scipy import stats

from leaktight.core.defence import Gradient
from leaktight.core.errors import InvalidValue
from leaktight.core.local import Local, Now
from leaktight.core.message import Kind, Message
from leaktight.core.random import stream
from leaktight.defences import GaussianNoise

N = 20_000


def message(value: float = 0.0) -> Message:
    return Message(
        Kind.UPDATE,
        "client-0",
        "server",
        0,
        {"a": torch.full((N,), value), "b": torch.full((2, 3), value)},
        {"examples": 5.0},
    )


@pytest.mark.parametrize("std", [1e-4, 0.1, 3.0])
@pytest.mark.parametrize("value", [0.0, -2.5])
def test_the_difference_is_normal_with_the_stated_deviation(std: float, value: float) -> None:
    sent = GaussianNoise(std=std).on_message(message(value), Local("client-0", seed=1))
    noise = (sent.tensors["a"].double() - value) / std
    # 2.5 - 2.4999 loses digits; the test is about the noise, not about them.
    tolerance = 0.02 if std > 1e-3 or value == 0 else 0.05
    assert abs(noise.std().item() - 1) < tolerance
    assert abs(noise.mean().item()) < 0.03
    if std > 1e-3:
        assert stats.kstest(noise.numpy(), "norm").pvalue > 0.01


def test_it_is_the_formula_with_the_party_s_own_stream() -> None:
    sent = GaussianNoise(std=0.5).on_message(message(1.0), Local("client-0", seed=7, now=Now(round=4)))
    rng = stream(7, "client-0", 4)
    for name, shape in (("a", (N,)), ("b", (2, 3))):
        assert torch.equal(sent.tensors[name], 1.0 + 0.5 * torch.randn(shape, generator=rng))
    assert (sent.kind, sent.facts) == (Kind.UPDATE, {"examples": 5.0})


def test_tensors_get_noise_of_their_own() -> None:
    zeros = Message(Kind.GRADIENT, "client-0", "server", 0, {"a": torch.zeros(50), "b": torch.zeros(50)})
    sent = GaussianNoise(std=1.0).on_message(zeros, Local("client-0", seed=0))
    assert not torch.equal(sent.tensors["a"], sent.tensors["b"])


def test_the_global_generator_is_not_touched() -> None:
    before = torch.random.get_rng_state()
    GaussianNoise(std=1.0).on_message(message(), Local("client-0", seed=0))
    assert torch.equal(before, torch.random.get_rng_state())


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_types_are_kept(dtype: torch.dtype) -> None:
    sent = GaussianNoise(std=0.1).on_message(message().map(lambda t: t.to(dtype)), Local("client-0", seed=0))
    assert {tensor.dtype for tensor in sent.tensors.values()} == {dtype}


@pytest.mark.parametrize(
    ("std", "sentence"),
    [
        (-1, r"The `std` of gaussian_noise must be at least 0\.?0?\. Got -1 instead\."),
        (float("inf"), "The `std` of gaussian_noise must be a finite number. Got inf instead."),
        ("much", "The `std` of gaussian_noise must be a valid number.*Got 'much' instead."),
    ],
)
def test_wrong_deviations(std: object, sentence: str) -> None:
    with pytest.raises(InvalidValue, match=sentence):
        GaussianNoise.model_validate({"std": std})


def test_noise_on_every_step_leaves_the_message_as_its_steps_made_it() -> None:
    defence, local = GaussianNoise(std=0.5, each="step"), Local("client-0", seed=3, now=Now(round=2))
    steps = [defence.on_gradient(Gradient({"a": torch.zeros(N)}, per_example=False), local) for _ in range(2)]
    drawn = stream(3, "client-0", 2)
    for step in steps:
        assert torch.equal(step.tensors["a"], 0.5 * torch.randn(N, generator=drawn))
    assert torch.equal(defence.on_message(message(1.0), local).tensors["a"], message(1.0).tensors["a"])
    plain = Gradient({"a": torch.ones(N)}, per_example=False)
    assert GaussianNoise(std=0.5).on_gradient(plain, local) is plain


def test_noise_on_a_step_goes_on_the_mean_of_its_examples() -> None:
    each = Gradient({"a": torch.arange(6.0).view(3, 2)}, per_example=True)
    noisy = GaussianNoise(std=1e-9, each="step").on_gradient(each, Local("client-0", seed=0))
    assert not noisy.per_example
    torch.testing.assert_close(noisy.tensors["a"], torch.tensor([2.0, 3.0]))


def test_a_step_that_is_not_finite_is_refused() -> None:
    broken = Gradient({"a": torch.tensor([1.0, float("nan")])}, per_example=False)
    with pytest.raises(InvalidValue, match="gradient of client-0 in round -1 under gaussian_noise must hold finite"):
        GaussianNoise(std=1.0, each="step").on_gradient(broken, Local("client-0", seed=0))
