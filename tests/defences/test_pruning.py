"""Layer-wise pruning: the stated share of each tensor, smallest first."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from leaktight.core.errors import InvalidValue
from leaktight.core.local import Local
from leaktight.core.message import Kind, Message
from leaktight.defences import Pruning


def pruned(rate: float, **tensors: torch.Tensor) -> dict[str, torch.Tensor]:
    message = Message(Kind.GRADIENT, "client-0", "server", 0, tensors)
    return dict(Pruning(rate=rate).on_message(message, Local("client-0", seed=0)).tensors)


@settings(max_examples=50, deadline=None)
@given(
    shape=st.lists(st.integers(1, 6), max_size=3),
    percent=st.integers(0, 99),
    seed=st.integers(0, 100),
    levels=st.sampled_from([2, 1000]),
)
def test_exactly_the_smallest_share_is_zeroed(shape: list[int], percent: int, seed: int, levels: int) -> None:
    rng = torch.Generator().manual_seed(seed)
    tensor = torch.randint(1, levels + 1, shape, generator=rng) * (torch.randint(0, 2, shape, generator=rng) * 2.0 - 1)
    out = pruned(percent / 100, weight=tensor)["weight"]
    drop = math.floor(Decimal(percent) * tensor.numel() / 100)
    assert int((out == 0).sum()) == drop
    kept = out != 0
    assert torch.equal(out[kept], tensor[kept])
    if drop:
        assert tensor[~kept].abs().max() <= tensor[kept].abs().min()


def test_each_tensor_is_pruned_on_its_own() -> None:
    out = pruned(0.5, small=torch.tensor([1e-9, 2e-9]), large=torch.tensor([1e9, -2e9]))
    assert torch.equal(out["small"], torch.tensor([0.0, 2e-9]))
    assert torch.equal(out["large"], torch.tensor([0.0, -2e9]))


def test_something_always_goes_out() -> None:
    out = pruned(0.999999, scalar=torch.tensor(2.0), row=torch.tensor([1.0, 2.0]), empty=torch.empty(0))
    assert out["scalar"].item() == 2.0
    assert out["row"].tolist() == [0.0, 2.0]
    assert out["empty"].shape == (0,)


def test_the_papers_reading_a_rate_of_70_percent_keeps_the_top_30() -> None:
    tensor = torch.randn(10, 100, generator=torch.Generator().manual_seed(0))
    out = pruned(0.7, weight=tensor)["weight"]
    threshold = tensor.abs().flatten().sort(descending=True).values[299]
    assert torch.equal(out, tensor * (tensor.abs() >= threshold))


@pytest.mark.parametrize(("rate", "must"), [(1.0, "below 1"), (-0.1, "at least 0"), (float("nan"), "a finite number")])
def test_wrong_rates(rate: float, must: str) -> None:
    with pytest.raises(InvalidValue, match=rf"The `rate` of pruning must be {must}.*Got {rate} instead\."):
        Pruning(rate=rate)
