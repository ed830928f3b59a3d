"""Local differential privacy: the norm is bounded, the noise has its scale, and the budget is that of the Gaussian mechanism."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from leaktight.core.budget import budgets_of
from leaktight.core.defence import Chain
from leaktight.core.errors import InvalidValue, Refusal
from leaktight.core.local import Local
from leaktight.core.message import Kind, Message
from leaktight.defences import LocalDP, TopK


def update(**tensors):
    return Message(
        Kind.UPDATE, "client-0", "server", 0, {name: torch.as_tensor(value) for name, value in tensors.items()}
    )


def norm(message):
    return float(torch.cat([tensor.flatten() for tensor in message.tensors.values()]).norm())


def test_a_message_is_clipped_as_a_whole_scalars_included():
    sent = LocalDP(clip=1.0, multiplier=0.0).on_message(
        update(weight=torch.full((4,), 3.0), scale=8.0), Local("client-0", 0)
    )
    assert norm(sent) == pytest.approx(1.0, rel=1e-5)
    assert sent.tensors["scale"].shape == ()
    assert float(sent.tensors["scale"]) == pytest.approx(0.8)


def test_a_short_message_keeps_its_length():
    message = update(weight=torch.tensor([0.3, 0.4]))
    sent = LocalDP(clip=1.0, multiplier=0.0).on_message(message, Local("client-0", 0))
    assert torch.equal(sent.tensors["weight"], message.tensors["weight"])


def test_the_noise_has_its_deviation():
    sent = LocalDP(clip=2.0, multiplier=0.5).on_message(update(weight=torch.zeros(50_000)), Local("client-0", 0))
    assert float(sent.tensors["weight"].std()) == pytest.approx(1.0, rel=0.02)


def by_formula(multiplier, messages, delta):
    """Return the best epsilon over Rényi orders of that many Gaussian mechanisms with sensitivity twice the clip."""
    found = []
    for order in (1 + k / 100 for k in range(1, 6400)):
        spent = messages * order / (2 * (multiplier / 2) ** 2)
        found.append(spent + math.log1p(-1 / order) - math.log(delta * order) / (order - 1))
    return min(found)


@pytest.mark.parametrize(("multiplier", "messages"), [(4.0, 1), (8.0, 1), (8.0, 10)])
def test_the_budget_is_that_of_composed_gaussian_mechanisms(multiplier, messages):
    local, defence = Local("client-0", 0), LocalDP(multiplier=multiplier)
    for _ in range(messages):
        defence.on_message(update(weight=torch.ones(3)), local)
    # Opacus looks at fewer orders, which can only cost a little.
    assert by_formula(multiplier, messages, 1e-5) <= local.notes["local_dp.epsilon"] + 1e-6
    assert local.notes["local_dp.epsilon"] == pytest.approx(by_formula(multiplier, messages, 1e-5), rel=0.02)


def test_what_the_budget_rests_on_is_said():
    local = Local("client-0", 0)
    for _ in range(3):
        LocalDP(multiplier=4.0).on_message(update(weight=torch.ones(3)), local)
    [budget] = budgets_of(local.notes)
    # By dp-accounting 4.0113 for three Gaussian mechanisms of half the multiplier, see test_accountant.
    assert str(budget) == (
        "epsilon at most 4.01 at delta 1e-05 (upper bound; whole messages, 3 of one participant, so that no sampling "
        "is assumed)"
    )


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from([torch.float16, torch.bfloat16]), st.floats(0.01, 100), st.integers(1, 500), st.integers(0, 1000)
)
def test_half_precision_is_never_longer_than_the_bound(dtype, clip, width, seed):
    found = (300 * torch.randn(width, generator=torch.Generator().manual_seed(seed))).to(dtype)
    sent = LocalDP(clip=clip, multiplier=0.0).on_message(update(weight=found, scale=found[0]), Local("client-0", 0))
    assert {tensor.dtype for tensor in sent.tensors.values()} == {dtype}
    assert torch.cat([tensor.flatten() for tensor in sent.tensors.values()]).double().norm() <= clip


def test_without_noise_there_is_no_guarantee():
    local = Local("client-0", 0)
    LocalDP(multiplier=0.0).on_message(update(weight=torch.ones(3)), local)
    assert local.notes["local_dp.epsilon"] == math.inf


def test_what_cannot_be_bounded_is_not_sent():
    with pytest.raises(InvalidValue, match="finite"):
        LocalDP().on_message(update(weight=torch.tensor([1.0, math.nan])), Local("client-0", 0))
    activation = Message(Kind.ACTIVATION, "client-0", "server", 0, {"weight": torch.ones(2)})
    with pytest.raises(Refusal, match="protects gradients and updates"):
        LocalDP().on_message(activation, Local("client-0", 0))


def test_it_chains():
    sent = Chain(links=(TopK(share=0.5), LocalDP())).on_message(update(weight=torch.arange(4.0)), Local("client-0", 0))
    assert (sent.tensors["weight"] != 0).all()
