"""DP-SGD: what one example can change, how much noise, and what it costs over rounds."""

from __future__ import annotations

import copy
import math

import pytest
import torch
from opacus.accountants import RDPAccountant
from pydantic import TypeAdapter
from torch import nn

from leaktight.core.defence import Chain, Gradient, Undefended
from leaktight.core.errors import InvalidValue, Refusal
from leaktight.core.local import Local, Memory, Now
from leaktight.core.message import Kind, Message, Tensors
from leaktight.core.random import stream
from leaktight.core.record import Record
from leaktight.core.sampling import KnownBatch, Poisson, Sampling
from leaktight.core.scenario import flatten, unflatten
from leaktight.core.value import Value
from leaktight.defences import DPSGD, GaussianNoise
from leaktight.defences.clipping import clip_each

SHAPES = {"weight": (3, 4), "bias": (3,), "scale": ()}


def gradient(batch: int = 6, size: float = 1.0, seed: int = 0) -> Gradient:
    rng = stream(seed, "toy")
    return Gradient(
        {name: size * torch.randn((batch, *shape), generator=rng) for name, shape in SHAPES.items()}, per_example=True
    )


def outgoing(tensors: Tensors, round: int = 0, kind: Kind = Kind.GRADIENT, **facts: float) -> Message:
    return Message(kind, "client-0", "server", round, tensors, facts)


def owner(examples: int = 60, memory: Memory | None = None, sampling: Sampling | None = None) -> Local:
    return Local("client-0", seed=5, memory=memory or {}, now=Now(examples=examples, sampling=sampling))


POISSON = Poisson(rate=0.1, expected=6)


def test_without_noise_it_is_the_mean_of_clipped_gradients() -> None:
    found = gradient()
    sent = DPSGD(clip=2.0, multiplier=0.0).on_gradient(found, owner())
    assert not sent.per_example
    for name, tensor in clip_each(found.tensors, 2.0).items():
        assert torch.allclose(sent.tensors[name], tensor.mean(0), atol=1e-7)


def test_one_example_changes_the_sum_by_no_more_than_the_clip() -> None:
    found = gradient(size=100.0)
    without = Gradient({name: tensor.clone() for name, tensor in found.tensors.items()}, per_example=True)
    for tensor in without.tensors.values():
        tensor[2] = 0
    defence = DPSGD(clip=0.5, multiplier=0.0)
    one, other = defence.on_gradient(found, owner()), defence.on_gradient(without, owner())
    change = torch.cat([(6 * (one.tensors[name] - other.tensors[name])).flatten() for name in SHAPES])
    assert change.norm().item() == pytest.approx(0.5, rel=1e-4)


def test_the_noise_has_the_stated_deviation_over_the_batch() -> None:
    silent = Gradient({"weight": torch.zeros(8, 20_000)}, per_example=True)
    sent = DPSGD(clip=0.5, multiplier=3.0).on_gradient(silent, owner()).tensors["weight"]
    assert sent.std().item() == pytest.approx(3.0 * 0.5 / 8, rel=0.03)


def test_it_agrees_with_opacus_gradient_by_gradient() -> None:
    from opacus import GradSampleModule

    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 3))
        inputs, labels = torch.randn(7, 5, requires_grad=True), torch.randint(0, 3, (7,))
    wrapped = GradSampleModule(copy.deepcopy(model), loss_reduction="sum")
    nn.functional.cross_entropy(wrapped(inputs), labels, reduction="sum").backward()
    each = {name.removeprefix("_module."): p.grad_sample for name, p in wrapped.named_parameters()}
    per_parameter = torch.stack([tensor.flatten(1).norm(dim=1) for tensor in each.values()], 1).norm(dim=1)
    factor = (0.3 / (per_parameter + 1e-6)).clamp(max=1)
    sent = DPSGD(clip=0.3, multiplier=0.0).on_gradient(Gradient(each, per_example=True), owner())
    for name, tensor in each.items():
        assert torch.allclose(sent.tensors[name], torch.einsum("i,i...->...", factor, tensor) / 7, atol=1e-5)


def play(defence: DPSGD | Chain, local: Local, rounds: range, steps: int = 2, batch: int = 6) -> None:
    for number in rounds:
        local.begin(number)
        for step in range(steps):
            found = defence.on_gradient(gradient(batch, seed=10 * number + step), local)
        defence.on_message(outgoing(found.tensors, number, Kind.UPDATE, local_steps=float(steps)), local)


def test_epsilon_is_cumulative_over_steps_and_rounds_as_opacus_counts_it() -> None:
    local, opacus = owner(sampling=POISSON), RDPAccountant()
    for number in range(4):
        play(DPSGD(multiplier=1.3, delta=1e-4), local, range(number, number + 1))
        for _ in range(2):
            opacus.step(noise_multiplier=1.3, sample_rate=0.1)
        assert local.notes["dp_sgd.epsilon"] == pytest.approx(opacus.get_epsilon(1e-4), rel=1e-9)
    assert local.notes["dp_sgd.delta"] == 1e-4


def test_the_account_is_plain_numbers_and_survives_storage() -> None:
    whole, first = owner(sampling=POISSON), owner(sampling=POISSON)
    play(DPSGD(), whole, range(4))
    play(DPSGD(), first, range(2))
    stored = flatten(first.memory)
    assert all(isinstance(value, (torch.Tensor, int, float)) for value in stored.values())
    second = owner(memory=unflatten(stored), sampling=POISSON)
    play(DPSGD(), second, range(2, 4))
    assert second.notes == whole.notes


def test_the_account_is_kept_in_the_scope_of_a_chain() -> None:
    alone, chained = owner(sampling=POISSON), owner(sampling=POISSON)
    play(DPSGD(), alone, range(3))
    play(Chain(links=(Undefended(), DPSGD(), GaussianNoise())), chained, range(3))
    assert chained.notes == alone.notes
    assert "spent" in chained.memory["1-dp_sgd"]


def test_the_clipped_share_is_noted() -> None:
    local = owner()
    mixed = Gradient({"weight": torch.tensor([[0.1], [5.0], [0.2], [7.0]])}, per_example=True)
    sent = DPSGD(clip=1.0).on_gradient(mixed, local)
    DPSGD(clip=1.0).on_message(outgoing(sent.tensors), local)
    assert local.notes["dp_sgd.clipped"] == 0.5
    short = Gradient({"weight": torch.full((4, 1), 0.1)}, per_example=True)
    sent = DPSGD(clip=1.0).on_gradient(short, local)
    DPSGD(clip=1.0).on_message(outgoing(sent.tensors, 1), local)
    assert local.notes["dp_sgd.clipped"] == 0.25


def test_no_noise_means_no_epsilon_to_speak_of_and_a_record_can_say_so() -> None:
    local = owner()
    play(DPSGD(multiplier=0.0), local, range(1))
    assert local.notes["dp_sgd.epsilon"] == math.inf
    notes: TypeAdapter[dict[str, float]] = TypeAdapter(
        Record.model_fields["notes"].annotation, config=Value.model_config
    )
    assert notes.validate_json(notes.dump_json(local.notes)) == local.notes


def test_an_average_is_refused() -> None:
    with pytest.raises(Refusal, match=r"dp_sgd must clip each example's own gradient. Got an average instead"):
        DPSGD().on_gradient(gradient().mean(), owner())
    with pytest.raises(Refusal, match="put it before any defence that averages"):
        Chain(links=(DPSGD(), DPSGD())).on_gradient(gradient(), owner())


@pytest.mark.parametrize(("examples", "batch"), [(6, 0), (5, 6)])
def test_a_batch_that_cannot_be_of_its_examples_is_an_error(examples: int, batch: int) -> None:
    with pytest.raises(
        InvalidValue, match=f"must be part of the examples that it owns.* Got {batch} of {examples} instead"
    ):
        DPSGD().on_gradient(gradient(batch), owner(examples))


@pytest.mark.parametrize("batch", [3, 9])
def test_a_sampled_sum_is_divided_by_the_expected_size(batch: int) -> None:
    found = gradient(batch)
    sent = DPSGD(clip=2.0, multiplier=0.0).on_gradient(found, owner(sampling=POISSON))
    for name, tensor in clip_each(found.tensors, 2.0).items():
        assert torch.allclose(sent.tensors[name], tensor.sum(0) / 6, atol=1e-7)


def test_an_empty_batch_sends_pure_noise_and_costs_as_much() -> None:
    nobody = Gradient({"weight": torch.zeros(0, 20_000), "scale": torch.zeros(0)}, per_example=True)
    local, defence = owner(sampling=POISSON), DPSGD(clip=0.5, multiplier=3.0)
    sent = defence.on_gradient(nobody, local).tensors
    assert sent["scale"].shape == ()
    assert sent["weight"].std().item() == pytest.approx(3.0 * 0.5 / 6, rel=0.03)
    defence.on_message(outgoing(sent), local)
    opacus = RDPAccountant()
    opacus.step(noise_multiplier=3.0, sample_rate=0.1)
    assert local.notes["dp_sgd.epsilon"] == pytest.approx(opacus.get_epsilon(1e-5))
    assert local.notes["dp_sgd.clipped"] == 0


def test_a_batch_of_which_nothing_is_told_is_in_no_way_amplified() -> None:
    local, opacus = owner(), RDPAccountant()
    play(DPSGD(multiplier=2.0), local, range(3), steps=2)
    for _ in range(6):
        opacus.step(noise_multiplier=2.0, sample_rate=1.0)
    # Opacus bounds what is exact here.
    assert 0.9 * opacus.get_epsilon(1e-5) < local.notes["dp_sgd.epsilon"] <= opacus.get_epsilon(1e-5)
    assert local.notes["dp_sgd.participations"] == 6
    assert "dp_sgd.sample_rate" not in local.notes


def test_an_attacked_batch_is_noted_apart_and_leaves_the_training_as_it_is() -> None:
    local, alone = owner(sampling=POISSON), owner(sampling=POISSON)
    for each in (local, alone):
        play(DPSGD(), each, range(2))
    local.now.sampling = KnownBatch(torch.arange(6), attacked=True)
    play(DPSGD(), local, range(2, 3), steps=1)
    attacked = {name: value for name, value in local.notes.items() if "attacked" in name}
    assert {**attacked, **alone.notes} == {**local.notes, "dp_sgd.clipped": alone.notes["dp_sgd.clipped"]}
    assert attacked["dp_sgd.attacked.epsilon"] == pytest.approx(
        4.3772, abs=1e-4
    )  # one Gaussian mechanism, whatever the batch
    assert (attacked["dp_sgd.attacked.delta"], attacked["dp_sgd.attacked.participations"]) == (1e-5, 1)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_comes_back_as_such_and_not_above_the_clip(dtype: torch.dtype) -> None:
    found = Gradient({"weight": 7 * torch.randn(1, 999, generator=stream(0, "half")).to(dtype)}, per_example=True)
    sent = DPSGD(clip=0.3, multiplier=0.0).on_gradient(found, owner()).tensors["weight"]
    assert sent.dtype is dtype
    assert 0.29 < sent.double().norm() <= 0.3


def test_a_message_that_skipped_the_steps_does_not_go_out() -> None:
    local, defence = owner(), DPSGD()
    with pytest.raises(
        InvalidValue, match=r"gradient of client-0 in round 0 must come from steps .* Got 0 such steps of 1 instead"
    ):
        defence.on_message(outgoing(gradient().mean().tensors), local)
    play(defence, local, range(1))
    with pytest.raises(InvalidValue, match="Got 0 such steps of 1 instead"):
        defence.on_message(outgoing(gradient().mean().tensors, 1), local)
    found = defence.on_gradient(gradient(), local)
    with pytest.raises(InvalidValue, match="Got 1 such steps of 3 instead"):
        defence.on_message(outgoing(found.tensors, 2, Kind.UPDATE, local_steps=3.0), local)


def test_other_kinds_of_message_are_refused() -> None:
    with pytest.raises(Refusal, match=r"protects gradients and updates. Got a message of kind activation instead"):
        DPSGD().on_message(outgoing({}, kind=Kind.ACTIVATION), owner())


def test_broken_gradients_are_not_clipped_into_shape() -> None:
    broken = gradient()
    broken.tensors["bias"][1, 1] = float("nan")
    with pytest.raises(
        InvalidValue, match=r"gradient of client-0 in round -1 under dp_sgd must hold finite numbers.*`bias`"
    ):
        DPSGD().on_gradient(broken, owner())


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ({"clip": 0}, "The `clip` of dp_sgd must be above 0"),
        ({"multiplier": -1}, "The `multiplier` of dp_sgd must be at least 0"),
        ({"multiplier": 1e9}, "The `multiplier` of dp_sgd must be at most 10000"),
        ({"delta": 0}, "The `delta` of dp_sgd must be above 0"),
        ({"delta": 1}, "The `delta` of dp_sgd must be below 1"),
    ],
)
def test_wrong_settings(setting: dict[str, float], sentence: str) -> None:
    with pytest.raises(InvalidValue) as found:
        DPSGD.model_validate(setting)
    assert sentence in str(found.value)
