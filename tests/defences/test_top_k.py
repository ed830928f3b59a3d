"""Top-k sharing: how many, which, what noise, and what is left for later."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from leaktight.core.errors import InvalidValue, Refusal
from leaktight.core.local import Local
from leaktight.core.message import Kind, Message, Tensors
from leaktight.core.random import stream
from leaktight.core.scenario import flatten, unflatten
from leaktight.defences import TopK

SIZES = {"weight": (6, 5), "bias": (7,), "scale": ()}
N = 38


def message(seed: int = 0, kind: Kind = Kind.GRADIENT, levels: int = 10_000, **facts: float) -> Message:
    rng = stream(seed, "toy")
    tensors = {
        name: torch.randint(1, levels + 1, shape, generator=rng) * (torch.randint(0, 2, shape, generator=rng) * 2.0 - 1)
        for name, shape in SIZES.items()
    }
    return Message(kind, "client-0", "server", 0, tensors, facts)


def row(tensors: Tensors) -> torch.Tensor:
    return torch.cat([tensor.flatten() for tensor in tensors.values()])


@settings(max_examples=50, deadline=None)
@given(percent=st.integers(1, 100), seed=st.integers(0, 50), levels=st.sampled_from([1, 3, 10_000]))
def test_exactly_the_largest_share_of_the_message_goes_out(percent: int, seed: int, levels: int) -> None:
    clean = message(seed, levels=levels)
    sent = row(TopK(share=percent / 100).on_message(clean, Local("client-0", seed=0)).tensors)
    whole = row(clean.tensors)
    kept = sent != 0
    assert int(kept.sum()) == math.ceil(Decimal(percent) * N / 100)
    assert torch.equal(sent[kept], whole[kept])
    if not kept.all():
        assert whole[~kept].abs().max() <= whole[kept].abs().min()


def test_the_scope_of_a_tensor_takes_the_share_of_each() -> None:
    sent = TopK(share=0.2, scope="tensor").on_message(message(), Local("client-0", seed=0)).tensors
    assert {name: int((tensor != 0).sum()) for name, tensor in sent.items()} == {"weight": 6, "bias": 2, "scale": 1}


def test_the_scope_of_a_message_may_silence_a_tensor() -> None:
    tensors = {"large": torch.full((5,), 9.0), "small": torch.full((5,), 1.0)}
    sent = TopK(share=0.5).on_message(
        Message(Kind.GRADIENT, "client-0", "server", 0, tensors), Local("client-0", seed=0)
    )
    assert torch.equal(sent.tensors["large"], tensors["large"])
    assert sent.tensors["small"].count_nonzero() == 0


def test_noise_falls_on_what_goes_out_only() -> None:
    clean = Message(Kind.GRADIENT, "client-0", "server", 0, {"a": torch.arange(1.0, 20_001)})
    sent = TopK(share=0.5, noise=0.25).on_message(clean, Local("client-0", seed=0)).tensors["a"]
    assert sent[:10_000].count_nonzero() == 0
    noise = (sent - clean.tensors["a"])[10_000:]
    assert noise.std().item() == pytest.approx(0.25, rel=0.03)


def test_what_is_not_sent_is_owed() -> None:
    local, defence = Local("client-0", seed=0), TopK(share=0.1, residual=True)
    sent = torch.zeros(N)
    clean = torch.zeros(N)
    for number in range(5):
        clean += row(message(number).tensors)
        sent += row(defence.on_message(message(number), local).tensors)
        owed = row(local.memory["residual"])
        assert torch.equal(sent + owed, clean)
        assert int((owed == 0).sum()) >= 4


def test_a_residual_decides_what_is_large() -> None:
    local, defence = Local("client-0", seed=0), TopK(share=0.5, residual=True)
    small = Message(Kind.UPDATE, "client-0", "server", 0, {"a": torch.tensor([3.0, 2.0])})
    assert defence.on_message(small, local).tensors["a"].tolist() == [3.0, 0.0]
    assert defence.on_message(small, local).tensors["a"].tolist() == [0.0, 4.0]


def test_noise_stays_out_of_the_residual() -> None:
    local = Local("client-0", seed=0)
    TopK(share=0.5, noise=5.0, residual=True).on_message(message(), local)
    clean, owed = row(message().tensors), row(local.memory["residual"])
    assert torch.equal(owed[owed != 0], clean[owed != 0])


def test_no_residual_leaves_nothing_in_memory() -> None:
    local = Local("client-0", seed=0)
    TopK(share=0.5).on_message(message(), local)
    assert local.memory == {}


def test_the_residual_survives_storage_by_path() -> None:
    stored, defence = Local("client-0", seed=0), TopK(share=0.3, residual=True)
    defence.on_message(message(0), stored)
    restored = Local("client-0", seed=0, memory=unflatten(flatten(stored.memory)))
    one, other = defence.on_message(message(1), stored), defence.on_message(message(1), restored)
    assert torch.equal(row(one.tensors), row(other.tensors))


def test_a_residual_of_another_shape_is_an_error() -> None:
    local, defence = Local("client-0", seed=0), TopK(residual=True)
    defence.on_message(message(), local)
    other = Message(Kind.GRADIENT, "client-0", "server", 1, {"weight": torch.ones(6, 4)})
    with pytest.raises(
        InvalidValue, match=r"gradient of client-0 must have a `weight` of shape \(6, 5\) like the one before it"
    ):
        defence.on_message(other, local)


def test_activations_have_no_residual() -> None:
    with pytest.raises(Refusal, match=r"Set `residual` to false for a message of kind activation\."):
        TopK(residual=True).on_message(message(kind=Kind.ACTIVATION), Local("client-0", seed=0))
    assert TopK().on_message(message(kind=Kind.ACTIVATION), Local("client-0", seed=0)).kind is Kind.ACTIVATION


@pytest.mark.parametrize("scope", ["message", "tensor"])
def test_empty_messages_stay_empty(scope: str) -> None:
    defence = TopK.model_validate({"scope": scope})
    assert defence.on_message(Message(Kind.GRADIENT, "a", "b", 0, {}), Local("a", seed=0)).tensors == {}
    hollow = Message(Kind.GRADIENT, "a", "b", 0, {"none": torch.empty(0, 3)})
    assert defence.on_message(hollow, Local("a", seed=0)).tensors["none"].shape == (0, 3)


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ({"share": 0}, "The `share` of top_k must be above 0"),
        ({"share": 1.1}, "The `share` of top_k must be at most 1"),
        ({"noise": -1}, "The `noise` of top_k must be at least 0"),
        ({"scope": "layer"}, "The `scope` of top_k must be one of 'message' or 'tensor'. Got 'layer' instead."),
        ({"shares": 0.1}, "top_k has no setting `shares`. Did you mean `share`?"),
    ],
)
def test_wrong_settings(setting: dict[str, object], sentence: str) -> None:
    with pytest.raises(InvalidValue) as found:
        TopK.model_validate(setting)
    assert sentence in str(found.value)
