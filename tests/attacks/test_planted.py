"""Planted cases: defences that only look like protection.

The strongest attacker reads through each of them, without knowing any by name.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Literal

import pytest
import torch
from torch import Tensor

from leaktight.attacks import LearnedInverter
from leaktight.attacks.strongest import Strongest
from leaktight.attacks.suite import scale, whole_suite
from leaktight.channels import AddNoise, KeepLargest
from leaktight.core.channel import Channel
from leaktight.core.defence import Defence
from leaktight.core.local import Local
from leaktight.core.message import Message
from leaktight.core.probe import Attempt
from leaktight.core.random import stream
from leaktight.core.record import Status
from leaktight.core.task import Task
from leaktight.core.threat import Knows, ThreatModel
from leaktight.data import Digits
from leaktight.defences import Polarization
from leaktight.findings.summary import summarise
from leaktight.findings.verdict import Judgement
from leaktight.learning import Federated
from leaktight.metrics import standard
from leaktight.models import MLP
from leaktight.plans.plan import Grid, Plan
from leaktight.running import run
from leaktight.testing.channels import check_channel
from leaktight.testing.conformance import ConformanceError


def change(message: Message, hook: Callable[[str, Tensor], Tensor]) -> Message:
    """Return a message with every tensor changed by its name and values."""
    return dataclasses.replace(message, tensors={name: hook(name, tensor) for name, tensor in message.tensors.items()})


class SecretScale(Defence):
    """Gradients times a positive number that the sender draws anew for each message."""

    kind: Literal["planted_secret_scale"] = "planted_secret_scale"

    def on_message(self, message: Message, local: Local) -> Message:
        factor = 2 * local.draws.normals(()).exp()
        return message.map(lambda tensor: factor * tensor)


class ConstantNoise(Defence):
    """Large Gaussian noise, but the same in every message of everybody."""

    kind: Literal["planted_constant_noise"] = "planted_constant_noise"
    std: float = 1.0

    def on_message(self, message: Message, local: Local) -> Message:
        return change(
            message, lambda name, tensor: tensor + self.std * torch.randn(tensor.shape, generator=stream(7, name))
        )


class NoiseOnOneTensor(Defence):
    """Large Gaussian noise, new each time, on one tensor alone."""

    kind: Literal["planted_noise_on_one_tensor"] = "planted_noise_on_one_tensor"
    std: float = 1.0
    tensor: str = "body.linear1.weight"

    def on_message(self, message: Message, local: Local) -> Message:
        noisy = message.tensors[self.tensor]
        noisy = noisy + self.std * local.draws.normal_like(noisy)
        return dataclasses.replace(message, tensors={**message.tensors, self.tensor: noisy})


class SignFlips(Defence):
    """The sign of half of all entries is flipped, by a key that all participants share."""

    kind: Literal["planted_sign_flips"] = "planted_sign_flips"
    secret: int = 7

    def on_message(self, message: Message, local: Local) -> Message:
        def flip(name: str, tensor: Tensor) -> Tensor:
            return tensor * (2 * torch.randint(2, tensor.shape, generator=stream(self.secret, name)) - 1)

        return change(message, flip)


class Permutation(Defence):
    """The entries of each tensor change places, by a key that all participants share."""

    kind: Literal["planted_permutation"] = "planted_permutation"
    secret: int = 7

    def on_message(self, message: Message, local: Local) -> Message:
        def permute(name: str, tensor: Tensor) -> Tensor:
            order = torch.randperm(tensor.numel(), generator=stream(self.secret, name))
            return tensor.flatten()[order].view_as(tensor)

        return change(message, permute)


class FewSeeds(Defence):
    """Large Gaussian noise, new each time, but from a generator with one of 256 seeds."""

    kind: Literal["planted_few_seeds"] = "planted_few_seeds"
    std: float = 1.0
    seeds: int = 256

    def on_message(self, message: Message, local: Local) -> Message:
        seed = int(local.draws.integers(self.seeds))
        return change(
            message, lambda name, tensor: tensor + self.std * torch.randn(tensor.shape, generator=stream(seed, name))
        )


class ClippingAlone(Defence):
    """Messages are shortened to a small norm."""

    kind: Literal["planted_clipping"] = "planted_clipping"
    bound: float = 0.1

    def on_message(self, message: Message, local: Local) -> Message:
        norm = torch.cat([tensor.flatten() for tensor in message.tensors.values()]).norm().item()
        return message.map(lambda tensor: tensor * min(1.0, self.bound / norm))


class EightBits(Defence):
    """Each tensor is rounded to 256 levels."""

    kind: Literal["planted_eight_bits"] = "planted_eight_bits"

    def on_message(self, message: Message, local: Local) -> Message:
        def quantise(tensor: Tensor) -> Tensor:
            step = tensor.abs().max() / 127
            return tensor if step == 0 else (tensor / step).round() * step

        return message.map(quantise)


class WithoutBiases(Defence):
    """The gradients of biases stay at home, since they give the examples away."""

    kind: Literal["planted_without_biases"] = "planted_without_biases"

    @property
    def withholds(self) -> bool:
        return True

    def on_message(self, message: Message, local: Local) -> Message:
        sent = {name: tensor for name, tensor in message.tensors.items() if not name.endswith("bias")}
        return dataclasses.replace(message, tensors=sent)


PLANTED = [
    SecretScale(),
    ConstantNoise(),
    NoiseOnOneTensor(),
    SignFlips(),
    Permutation(),
    FewSeeds(),
    ClippingAlone(),
    EightBits(),
    Polarization(alpha2=100.0),
    WithoutBiases(),
]
THREAT = ThreatModel(knows=frozenset({Knows.AUXILIARY, Knows.DEFENCE, Knows.LOCAL_STEPS}))


@pytest.fixture(scope="module")
def judgements(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Judgement]:
    """Audit all planted defences by the suite, with short searches, and return what was found about images."""
    members = {**scale(whole_suite(), 0.1), "learned_inverter": LearnedInverter(messages=600)}
    suite = Attempt(attack=Strongest(members=members), threat=THREAT, metrics=standard())
    plan = Plan(
        scenarios={"1": Federated(data=Digits(), model=MLP(), rounds=0)},
        defences=tuple(PLANTED),
        probes={"strongest": suite},
        grid=Grid(victims=6),
    )
    records = run(plan, tmp_path_factory.mktemp("planted"))
    assert {record.status for record in records} == {Status.DONE}
    return {str(one.defence): one for one in summarise(records).judgements if one.kind.kind == "images"}


@pytest.mark.long
@pytest.mark.parametrize("defence", PLANTED, ids=str)
def test_what_only_looks_like_protection_is_broken(judgements: dict[str, Judgement], defence: Defence) -> None:
    found = judgements[str(defence)]
    assert found.verdict in ("leaks", "reduced")
    assert not found.is_good


class NoNoise(Defence):
    """States noise of 0.1, and sends everything as it is."""

    kind: Literal["planted_no_noise"] = "planted_no_noise"

    def channel(self, task: Task) -> Channel:
        return Channel(message=(AddNoise(std=0.1),))

    def on_message(self, message: Message, local: Local) -> Message:
        return message


class NoMask(NoNoise):
    """States that only the tenth part of all entries is sent, and sends everything."""

    kind: Literal["planted_no_mask"] = "planted_no_mask"  # type: ignore[assignment]

    def channel(self, task: Task) -> Channel:
        return Channel(message=(KeepLargest(lambda entries: -(-entries // 10)),))


@pytest.mark.parametrize(
    ("defence", "complaint"), [(NoNoise(), "a variance of 0"), (NoMask(), "276 entries came where 28 are stated")]
)
def test_a_false_channel_does_not_conform(defence: Defence, complaint: str) -> None:
    with pytest.raises(ConformanceError, match=complaint):
        check_channel(defence)
