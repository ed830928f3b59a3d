"""The agreed order of examples."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from leaktight.core.errors import InvalidValue
from leaktight.learning import BatchOrder


@given(st.integers(1, 50), st.integers(1, 50), st.integers(0, 5))
def test_a_pass_holds_each_row_at_most_once_and_another_seed_another_order(count, size, seed):
    size = min(size, count)
    per_pass = count // size
    order = BatchOrder(count, size, seed)
    for which in range(2):
        rows = torch.cat([order.at(which * per_pass + place) for place in range(per_pass)])
        assert len(rows) == len(torch.unique(rows)) == per_pass * size
        assert rows.min() >= 0
        assert rows.max() < count


def test_another_seed_is_another_order():
    assert not torch.equal(BatchOrder(100, 50, seed=0).at(0), BatchOrder(100, 50, seed=1).at(0))


def test_an_order_can_be_asked_in_any_order():
    order, again = BatchOrder(20, 4, seed=3), BatchOrder(20, 4, seed=3)
    forward = [order.at(step) for step in range(15)]
    backward = [again.at(step) for step in reversed(range(15))]
    assert all(torch.equal(one, other) for one, other in zip(forward, reversed(backward), strict=True))


@pytest.mark.parametrize("size", [0, 21])
def test_an_order_needs_rows_for_a_batch(size):
    with pytest.raises(InvalidValue, match=f"The batch size must be from 1 to the 20 rows .* Got {size} instead"):
        BatchOrder(20, size, seed=0)
