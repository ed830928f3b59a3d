"""A channel cannot lie: what real defences state passes, and what liars state does not."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any, Literal

import pytest
import torch

from leaktight.channels import AddNoise, Clip, KeepLargest
from leaktight.core.channel import Belief, Channel, Outcome, Stage
from leaktight.core.defence import Chain, Defence, Gradient, Undefended
from leaktight.core.errors import Refusal
from leaktight.core.local import Local
from leaktight.core.message import Kind, Message
from leaktight.core.task import Batch
from leaktight.defences import (
    DPSGD,
    ClassKeys,
    GaussianNoise,
    IsotropicNoise,
    LaplaceNoise,
    LayerGuard,
    LocalDP,
    MaxNorm,
    Polarization,
    Pruning,
    SumKL,
    TopK,
    Transformation,
    Withhold,
)
from leaktight.testing.channels import check_channel
from leaktight.testing.conformance import ConformanceError
from leaktight.testing.toys import toy_task

BOTH = ("head", "body.1")
HONEST = [
    Undefended(),
    GaussianNoise(std=0.05, each="step"),
    LaplaceNoise(scale=0.02, each="step"),
    TopK(share=0.3),
    TopK(scope="tensor"),
    TopK(noise=0.1),
    TopK(share=1, noise=0.1),
    Pruning(rate=0.5),
    DPSGD(multiplier=0.01, clip=0.1),
    DPSGD(multiplier=0, clip=0.1),
    LocalDP(multiplier=0.01, clip=0.1),
    LocalDP(multiplier=0, clip=0.1),
    Polarization(alpha2=0.5),
    Polarization(alpha1=0.5),
    ClassKeys(dimensions=16, weight_decay=0.1),
    Transformation(policy="3-1-7+43-18-18"),
    Transformation(policy="3-1-7", probability="listed"),
    Withhold(layers=("head",)),
    LayerGuard(layers=BOTH, count=2, guard=TopK()),
    LayerGuard(layers=BOTH, guard=GaussianNoise()),
    LayerGuard(layers=BOTH, count=0),
]
LINKS = [
    GaussianNoise(std=0.01),
    LaplaceNoise(scale=0.01),
    TopK(share=0.3),
    Pruning(rate=0.5),
    DPSGD(multiplier=0.1, clip=0.5),
    LocalDP(multiplier=0.05, clip=0.3),
    Polarization(),
    Transformation(policy="3-1-7"),
    Withhold(layers=("head",)),
    LayerGuard(layers=("head",), guard=TopK(share=0.3)),
    LayerGuard(layers=("body.1",), guard=GaussianNoise(std=0.01)),
]
LONGER = [
    (GaussianNoise(std=0.01), TopK(share=0.3), GaussianNoise(std=0.01)),
    (TopK(share=0.3), GaussianNoise(std=0.01), Pruning(rate=0.5)),
    (TopK(share=0.3), Pruning(rate=0.5), LocalDP(multiplier=0.01, clip=0.1)),
    (TopK(share=0.5), LayerGuard(layers=("body.1",), guard=GaussianNoise(std=0.01)), TopK(share=0.3)),
    (LaplaceNoise(scale=0.01), GaussianNoise(std=0.01), TopK(share=0.3)),
    (Polarization(), DPSGD(multiplier=0.1, clip=0.3), TopK()),
    (LaplaceNoise(scale=0.01), LaplaceNoise(scale=0.02)),
]


@pytest.mark.parametrize("defence", HONEST, ids=str)
def test_what_defences_state_of_gradients_is_true(defence: Defence) -> None:
    check_channel(defence)


@pytest.mark.parametrize(
    "defence", [SumKL(), SumKL(scale=1.0), IsotropicNoise(), MaxNorm(), LaplaceNoise(), TopK(), Pruning()], ids=str
)
def test_what_defences_state_of_cut_gradients_is_true(defence: Defence) -> None:
    check_channel(defence, Kind.CUT_GRADIENT)


@pytest.mark.parametrize(
    "links", [*itertools.permutations(LINKS, 2), *LONGER], ids=lambda links: str(Chain(links=links))
)
def test_what_chains_state_is_true(links: tuple[Defence, ...]) -> None:
    try:
        check_channel(Chain(links=links), draws=100)
    except Refusal:
        pytest.skip("the two do not fit together")


def test_a_residual_and_a_crop_are_not_stated_in_full() -> None:
    task = toy_task()
    assert not TopK(residual=True).channel(task).complete
    assert not Transformation(policy="3-1-7", crop_flip=True).channel(task).complete
    assert not Chain(links=(TopK(residual=True), GaussianNoise())).channel(task).complete
    assert not SumKL().channel(task).complete


OFF = [
    GaussianNoise(std=0),
    LaplaceNoise(scale=0, each="step"),
    TopK(share=1),
    Pruning(rate=0),
    Polarization(alpha2=0),
    SumKL(scale=0),
    IsotropicNoise(ratio=0),
    Undefended(),
    Chain(),
    Chain(links=(TopK(share=1), Pruning(rate=0))),
]


@pytest.mark.parametrize("defence", OFF, ids=str)
def test_what_is_off_states_that_it_does_nothing(defence: Defence) -> None:
    assert defence.channel(toy_task()) == Channel()


def test_a_sumkl_batch_of_one_class_is_not_stated_in_full() -> None:
    rows = {"cut": torch.rand(4, 3)}
    assert not SumKL().cut_channel(rows, torch.ones(4, dtype=torch.long)).complete
    assert SumKL().cut_channel(rows, torch.tensor([0, 1, 0, 1])).complete


def test_noise_along_rows_of_several_tensors_is_not_stated() -> None:
    rows = {"wide": torch.rand(4, 3), "deep": torch.rand(4, 2)}
    assert MaxNorm().cut_channel(rows, torch.zeros(4)) == Channel(complete=False)
    assert IsotropicNoise().cut_channel(rows, torch.zeros(4)).complete


def liar(honest: Defence, stated: Channel, hooks: dict[str, Any] | None = None) -> Defence:
    """Return a defence that does what an honest one does, and states something else."""
    name = f"liar_{next(_NUMBERS)}"
    body = {
        "__annotations__": {"kind": Literal[name]},
        "__module__": __name__,
        "kind": name,
        "per_example": property(lambda self: honest.per_example),
        "channel": lambda self, task: stated,
        "on_task": lambda self, task, local: honest.on_task(task, local),
        "on_batch": lambda self, batch, local: honest.on_batch(batch, local),
        "on_gradient": lambda self, gradient, local: honest.on_gradient(gradient, local),
        "on_message": lambda self, message, local: honest.on_message(message, local),
        **(hooks or {}),
    }
    made: type[Defence] = type(name.title(), (Defence,), body)
    return made()


_NUMBERS = itertools.count()


def test_a_copy_that_states_the_truth_passes() -> None:
    honest = GaussianNoise(std=0.1)
    check_channel(liar(honest, honest.channel(toy_task())))


@dataclasses.dataclass(frozen=True)
class WrongBound(Stage):
    """A mask of which entries that did not come are said to be smaller than they are: the means are said to be larger."""

    def push(self, belief: Belief) -> Belief:
        belief = KeepLargest(lambda entries: -(-entries // 10)).push(belief)
        kept = {name: mean.abs() >= belief.masks[name].edge for name, mean in belief.means.items()}
        means = {name: torch.where(kept[name], mean, 20 * mean) for name, mean in belief.means.items()}
        return dataclasses.replace(belief, means=means)


def noise_on_the_first_tensor(self: Defence, message: Message, local: Local) -> Message:
    name, tensor = next(iter(message.tensors.items()))
    return dataclasses.replace(
        message, tensors={**message.tensors, name: tensor + 0.1 * local.draws.normal_like(tensor)}
    )


def one_draw_for_all(self: Defence, message: Message, local: Local) -> Message:
    shift = 0.1 * local.draws.normals(())
    return message.map(lambda tensor: tensor + shift)


def the_same_draw_every_time(self: Defence, message: Message, local: Local) -> Message:
    draws = local.fixed_draws("liar", "noise")
    return message.map(lambda tensor: tensor + 0.1 * draws.normal_like(tensor))


def a_hidden_shift(self: Defence, gradient: Gradient, local: Local) -> Gradient:
    return Gradient({name: tensor + 0.01 for name, tensor in gradient.mean().tensors.items()}, per_example=False)


def darker(self: Defence, batch: Batch, local: Local) -> Batch:
    return dataclasses.replace(batch, inputs=0.9 * batch.inputs)


def other_labels(self: Defence, batch: Batch, local: Local) -> Batch:
    return dataclasses.replace(batch, labels=batch.labels.flip(0))


def drop_the_head(self: Defence, message: Message, local: Local) -> Message:
    return dataclasses.replace(message, tensors={n: t for n, t in message.tensors.items() if not n.startswith("head")})


POLICY = Transformation(policy="3+18")
OUTCOMES = POLICY.outcomes((1, 3, 4))


def weighed(*weights: float) -> Channel:
    return Channel(outcomes=tuple(Outcome(w, o.change, o.name) for w, o in zip(weights, OUTCOMES, strict=False)))


NOISE, NONE = GaussianNoise(std=0.1), Undefended()
STATED = Channel(message=(AddNoise(std=0.1),))
LIARS: dict[str, tuple[Defence, Channel, dict[str, Any], str]] = {
    "less noise": (NOISE, Channel(message=(AddNoise(std=0.11),)), {}, "a variance of"),
    "more noise": (NOISE, Channel(message=(AddNoise(std=0.09),)), {}, "a variance of"),
    "another law": (LaplaceNoise(scale=0.1), Channel(message=(AddNoise(std=0.02**0.5),)), {}, "a fourth moment of"),
    "noise on one tensor": (NONE, STATED, {"on_message": noise_on_the_first_tensor}, "a variance of 0"),
    "noise that is not stated": (NOISE, Channel(), {}, "beyond what its channel allows"),
    "one draw for all": (NONE, STATED, {"on_message": one_draw_for_all}, "must state the law"),
    "the same draw": (NONE, STATED, {"on_message": the_same_draw_every_time}, "must be 1 within"),
    "a wrong clip": (
        LocalDP(clip=0.1, multiplier=0.01),
        Channel(message=(Clip(0.12), AddNoise(std=0.001))),
        {},
        "must state the law",
    ),
    "no clip": (
        DPSGD(clip=0.1, multiplier=0.01),
        Channel(step=(AddNoise(std=0.001, per_example=True),)),
        {},
        "must state the law",
    ),
    "noise of a sum": (DPSGD(clip=9.0, multiplier=0.01), Channel(step=(AddNoise(std=0.09),)), {}, "a variance of"),
    "a bound too small": (TopK(), Channel(message=(WrongBound(),)), {}, "beyond what its channel allows"),
    "a mask that is not stated": (TopK(), Channel(), {}, "beyond what its channel allows"),
    "a hidden mask that is not stated": (
        Chain(links=(TopK(), NOISE.with_strength(0.001))),
        Channel(message=(AddNoise(std=0.001),)),
        {},
        "must state the law",
    ),
    "a hook that is not stated": (NONE, Channel(), {"on_gradient": a_hidden_shift}, "beyond what its channel allows"),
    "examples that are changed": (NONE, Channel(), {"on_batch": darker}, "must state what may become of examples"),
    "labels that are changed": (NONE, Channel(), {"on_batch": other_labels}, "must state what it does to labels"),
    "a private task": (Polarization(alpha2=1.0), Channel(), {}, "beyond what its channel allows"),
    "an outcome that is missing": (POLICY, weighed(0.6, 0.4), {}, "must state all that may become of examples"),
    "outcomes of other weights": (POLICY, weighed(0.4, 0.4, 0.1, 0.1), {}, "must state how likely each outcome is"),
    "weights that sum to less": (
        POLICY,
        weighed(0.25, 0.25, 0.25),
        {},
        "must state outcomes whose probabilities sum to 1",
    ),
    "weights that sum to more": (POLICY, weighed(0.5, 0.5, 0.5, 0.5), {}, "must give each outcome a probability"),
    "tensors that do not come": (
        NONE,
        Channel(),
        {"on_message": drop_the_head},
        "must send the tensors that its channel states",
    ),
    "no stages": (NONE, Channel(message=("noise",)), {}, "must state its channel in stages"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize(("honest", "stated", "hooks", "complaint"), LIARS.values(), ids=LIARS)
def test_a_channel_that_lies_is_caught(honest: Defence, stated: Channel, hooks: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConformanceError, match=complaint):
        check_channel(liar(honest, stated, hooks))


def test_who_does_not_claim_to_state_everything_is_not_caught() -> None:
    check_channel(liar(NOISE, Channel(complete=False), {"states_channel": property(lambda self: False)}))
    with pytest.raises(ConformanceError, match="must state a complete channel if it says that it does"):
        check_channel(liar(NOISE, Channel(complete=False)))


def test_noise_of_cut_gradients_that_lies_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = IsotropicNoise.cut_channel
    monkeypatch.setattr(
        IsotropicNoise,
        "cut_channel",
        lambda self, gradients, labels: honest(IsotropicNoise(ratio=4.5), gradients, labels),
    )
    with pytest.raises(ConformanceError, match="a variance of"):
        check_channel(IsotropicNoise(ratio=5.0), Kind.CUT_GRADIENT)
