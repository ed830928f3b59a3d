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
from leaktight.testing.channels import check_channel

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


def test_with_a_clip_a_message_is_shortened_first_and_the_noise_is_in_units_of_it() -> None:
    sent = GaussianNoise(std=0.25, clip=4.0).on_message(message(1.0), Local("client-0", seed=7, now=Now(round=4)))
    rng, norm = stream(7, "client-0", 4), (N + 6) ** 0.5
    for name, shape in (("a", (N,)), ("b", (2, 3))):
        expected = torch.full(shape, 4.0 / norm) + 1.0 * torch.randn(shape, generator=rng)
        assert torch.allclose(sent.tensors[name], expected, atol=1e-5)


def test_a_message_within_the_clip_keeps_its_length() -> None:
    noise, short = GaussianNoise(std=1e-9, clip=1e6), message(1.0)
    sent = noise.on_message(short, Local("client-0", seed=0))
    assert torch.allclose(sent.tensors["b"], short.tensors["b"], atol=1e-2)


def test_a_clip_of_steps_bounds_the_mean_gradient() -> None:
    noise = GaussianNoise(std=1e-6, clip=0.5, each="step")
    gradient = Gradient({"a": torch.tensor([[3.0, 4.0], [3.0, 4.0]])}, per_example=True)
    sent = noise.on_gradient(gradient, Local("client-0", seed=0))
    assert torch.allclose(sent.tensors["a"], torch.tensor([0.3, 0.4]), atol=1e-4)
    assert noise.noise_norm(100) == 0
    assert not noise.effects


def test_half_precision_stays_so_under_a_clip() -> None:
    half = Message(Kind.UPDATE, "client-0", "server", 0, {"a": torch.ones(9, dtype=torch.float16)})
    sent = GaussianNoise(std=0.1, clip=1.0).on_message(half, Local("client-0", seed=0))
    assert sent.tensors["a"].dtype is torch.float16


def test_off_clips_nothing_and_settings_of_before_there_was_a_clip_keep_their_key() -> None:
    off = GaussianNoise(std=0, clip=0.1)
    assert torch.equal(off.on_message(message(1.0), Local("client-0", seed=0)).tensors["a"], message(1.0).tensors["a"])
    assert off.message_bound is None
    assert GaussianNoise(std=0.5).to_dict() == {"kind": "gaussian_noise", "each": "message", "std": 0.5}


def test_the_norm_of_the_noise_is_what_is_drawn() -> None:
    noise, zeros = GaussianNoise(std=0.2, clip=3.0), message(0.0)
    sent = noise.on_message(zeros, Local("client-0", seed=0))
    drawn = torch.cat([tensor.flatten() for tensor in sent.tensors.values()]).norm().item()
    assert abs(drawn / noise.noise_norm(N + 6) - 1) < 0.03


def test_a_clip_must_be_positive() -> None:
    with pytest.raises(InvalidValue, match="`clip` of gaussian_noise must be above 0"):
        GaussianNoise(clip=0)


@pytest.mark.parametrize("each", ["message", "step"])
def test_the_channel_of_a_clip_does_not_lie(each: str) -> None:
    check_channel(GaussianNoise(std=0.05, clip=0.1, each=each))
