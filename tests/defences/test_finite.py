"""What cannot be protected must not go out."""

from __future__ import annotations

import pytest
import torch

from leaktight.core.defence import Defence
from leaktight.core.errors import InvalidValue
from leaktight.core.local import Local
from leaktight.core.message import Kind, Message
from leaktight.defences import DPSGD, GaussianNoise, LaplaceNoise, Pruning, TopK
from leaktight.defences.finite import finite, finite_tensors

DEFENCES = [
    GaussianNoise(),
    LaplaceNoise(),
    Pruning(),
    TopK(),
    TopK(residual=True),
    GaussianNoise(std=0),
    TopK(share=1.0),
]


def message(**tensors: torch.Tensor) -> Message:
    return Message(Kind.GRADIENT, "client-0", "server", 3, tensors)


def test_finite_messages_come_back_as_they_are() -> None:
    sent = message(weight=torch.tensor([1.0, -0.0]), scalar=torch.tensor(3e38), empty=torch.empty(0))
    assert finite(sent, "some_defence") is sent


def test_every_broken_tensor_is_named_at_once() -> None:
    broken = message(a=torch.tensor([float("inf")]), b=torch.tensor([0.0]), c=torch.tensor(float("nan")))
    with pytest.raises(
        InvalidValue, match=r"gradient of client-0 in round 3 under pruning must hold finite.*`a`, `c` instead"
    ):
        finite(broken, "pruning")


def test_whole_numbers_are_named() -> None:
    with pytest.raises(
        InvalidValue, match=r"A message must hold floating-point numbers\. Got another type in `count` instead"
    ):
        finite_tensors({"count": torch.tensor([1, 2])}, "A message")


@pytest.mark.parametrize("defence", DEFENCES, ids=str)
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_no_defence_lets_a_broken_message_through(defence: Defence, value: float) -> None:
    broken = message(good=torch.ones(3), bad=torch.tensor([0.0, value]))
    with pytest.raises(InvalidValue, match=rf"under {defence.kind} must hold finite numbers.*`bad`"):
        defence.on_message(broken, Local("client-0", seed=0))


def test_dp_sgd_lets_no_broken_message_through() -> None:
    local = Local(
        "client-0", seed=0, memory={"unsent": 1, "spent": {"costs": torch.zeros(151)}, "clipped": 0, "seen": 1}
    )
    with pytest.raises(InvalidValue, match=r"under dp_sgd must hold finite numbers"):
        DPSGD().on_message(message(bad=torch.tensor([float("nan")])), local)


@pytest.mark.parametrize("defence", [GaussianNoise(std=1e300), LaplaceNoise(scale=1e300), TopK(noise=1e300)], ids=str)
def test_noise_that_overflows_is_an_error_and_not_a_message(defence: Defence) -> None:
    with pytest.raises(InvalidValue, match="Got NaN or infinity in `weight`"):
        defence.on_message(message(weight=torch.ones(100)), Local("client-0", seed=0))
