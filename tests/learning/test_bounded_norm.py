from __future__ import annotations

import pytest
import torch

from leaktight.core.random import stream
from leaktight.learning.bounded_norm import NORMS, bounded_norms, join_totals, spans, totals


def test_the_norms_are_those_of_one_long_vector() -> None:
    changes = torch.randn(3, 10_007, generator=stream(0, "changes"), dtype=torch.float64)
    span = torch.tensor([0.5, 2.0, 7.0], dtype=torch.float64)
    entries = 10_007 // 2
    found = bounded_norms(totals([changes[:, :5000], changes[:, 5000:]]), span, entries)
    for row, change, width in zip(found, changes, span, strict=True):
        for value, order, factor in zip(row, (2, 1, torch.inf), (entries**0.5, entries, 1), strict=True):
            assert value.item() == pytest.approx(
                (torch.linalg.vector_norm(change / width, order) / factor).item(), rel=1e-12
            )
    assert len(NORMS) == found.shape[1]


def test_single_precision_loses_nothing_that_shows() -> None:
    changes = torch.randn(2, 600_000, generator=stream(0, "changes"))
    exact = totals([changes.double()])
    assert torch.allclose(totals([changes]), exact, rtol=1e-6)


def test_small_changes_do_not_vanish_and_large_ones_do_not_overflow() -> None:
    changes = torch.randn(1, 100, generator=stream(0, "changes"))
    ordinary = bounded_norms(totals([changes]), torch.ones(1), 100)
    for scale in (1e-30, 1e30):
        scaled = bounded_norms(totals([changes * scale]), torch.tensor([scale], dtype=torch.float64), 100)
        assert torch.allclose(scaled, ordinary, rtol=1e-5)


def test_parts_join_to_the_whole() -> None:
    changes = torch.randn(4, 60, generator=stream(0, "changes"), dtype=torch.float64)
    assert torch.allclose(join_totals([totals([changes[:, :7]]), totals([changes[:, 7:]])]), totals([changes]))


def test_the_range_goes_over_all_pieces() -> None:
    pieces = [torch.tensor([[1.0, 2.0], [5.0, 5.0]]), torch.tensor([[-3.0], [5.0]])]
    assert spans(pieces).tolist() == [5.0, 0.0]


def test_without_a_range_every_norm_is_zero() -> None:
    found = bounded_norms(totals([torch.ones(2, 3)]), torch.tensor([0.0, 1.0]), 3)
    assert found[0].tolist() == [0, 0, 0]
    assert (found[1] > 0).all()


def test_no_change_has_norm_zero() -> None:
    assert bounded_norms(totals([torch.zeros(1, 3)]), torch.tensor([1.0]), 3).tolist() == [[0, 0, 0]]


def test_a_range_that_is_no_number_does_not_pass_for_none():
    found = bounded_norms(totals([torch.tensor([[3.0, -4.0]])]), torch.tensor([float("nan")]), entries=2)
    assert found.isnan().all()
