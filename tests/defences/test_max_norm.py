"""Max-norm: expected squared norms match the largest, along each row's own line."""

from __future__ import annotations

import pytest
import torch

from leaktight.core.local import Local, Now
from leaktight.core.message import Kind, Message
from leaktight.core.random import stream
from leaktight.defences import MaxNorm


def sent(rows: torch.Tensor, seed: int = 0, round: int = -1) -> torch.Tensor:
    message = Message(Kind.CUT_GRADIENT, "label-party", "feature-party", 0, {"cut": rows})
    return MaxNorm().on_message(message, Local("label-party", seed=seed, now=Now(round=round))).tensors["cut"]


def test_it_is_the_published_formula() -> None:
    rows = torch.randn(6, 3, generator=stream(1))
    norms = rows.norm(dim=1)
    sigma = (norms.max() ** 2 / (norms**2 + 1e-32) - 1).clamp(min=0).sqrt()
    drawn = torch.randn(6, generator=stream(5, "label-party", 2))
    assert torch.allclose(sent(rows, 5, 2), rows * (1 + sigma * drawn)[:, None], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("size", [1e-25, 1e-6, 1.0, 1e25])
def test_expected_squared_norms_match_and_lines_are_kept(size: float) -> None:
    longest, short = torch.tensor([[0.0, 2.0, 0.0]]) * size, torch.tensor([[0.3, -0.1, 0.2]]) * size
    found = sent(torch.cat([longest, short.expand(50_000, 3)])).double() / size
    assert torch.allclose(found[0], torch.tensor([0.0, 2.0, 0.0]).double())
    assert found[1:].square().sum(1).mean().item() == pytest.approx(4.0, rel=0.03)
    assert found[1:].mean(0).tolist() == pytest.approx([0.3, -0.1, 0.2], abs=0.03)
    direction = short[0].double() / short[0].double().norm()
    assert (found[1:] - (found[1:] @ direction)[:, None] * direction).abs().max() < 1e-5


def test_rows_of_one_length_are_left_as_they_are() -> None:
    rows = torch.tensor([[3.0, 4.0], [-5.0, 0.0], [4.0, -3.0]])
    assert torch.equal(sent(rows), rows)


def test_a_row_of_zeros_does_not_stand_out() -> None:
    rows = torch.zeros(20_001, 4)
    rows[0, 0] = 2.0
    found = sent(rows)
    assert (found[1:].norm(dim=1) > 0).all()
    assert found[1:].square().sum(1).mean().item() == pytest.approx(4.0, rel=0.03)
    assert torch.equal(found[0], rows[0])


def test_a_row_too_small_to_have_a_length_gets_one() -> None:
    found = sent(torch.cat([torch.ones(1, 2), torch.full((5000, 2), 1e-30)]))
    assert torch.isfinite(found).all()
    assert found[1:].square().sum(1).mean().item() == pytest.approx(2.0, rel=0.1)


@pytest.mark.parametrize("rows", [torch.zeros(3, 2), torch.zeros(0, 2), torch.zeros(3, 0)])
def test_nothing_to_stretch_is_left_alone(rows: torch.Tensor) -> None:
    assert torch.equal(sent(rows), rows)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16])
def test_types_are_kept(dtype: torch.dtype) -> None:
    assert sent(torch.rand(3, 2).to(dtype)).dtype is dtype
