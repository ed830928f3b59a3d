"""Exactly as many entries as asked for, ties included."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from leaktight.defences.magnitude import largest, whole_part

few = settings(max_examples=60, deadline=None)


@few
@given(values=st.lists(st.integers(0, 4), max_size=30), data=st.data())
def test_largest_agrees_with_a_stable_sort(values: list[int], data: st.DataObject) -> None:
    keep = data.draw(st.integers(0, len(values)))
    order = sorted(range(len(values)), key=lambda place: -values[place])
    wanted = set(order[:keep])
    mask = largest(torch.tensor(values, dtype=torch.float32), keep)
    assert {place for place, kept in enumerate(mask.tolist()) if kept} == wanted


def test_all_equal_entries_keep_the_first() -> None:
    assert largest(torch.zeros(5), 2).tolist() == [True, True, False, False, False]


@few
@given(percent=st.integers(0, 100), n=st.integers(0, 10_000))
def test_a_share_counts_as_the_decimal_it_prints_as(percent: int, n: int) -> None:
    exact = Decimal(percent) * n / 100
    share = percent / 100
    assert whole_part(share, n, up=True) == math.ceil(exact)
    assert whole_part(share, n, up=False) == math.floor(exact)


@pytest.mark.parametrize(
    ("share", "n", "count"), [(0.1, 30, 3), (0.07, 100, 7), (1e-05, 100_000, 1), (1.0, 7, 7), (1e-9, 7, 1)]
)
def test_shares_where_floating_point_would_round_wrongly(share: float, n: int, count: int) -> None:
    assert whole_part(share, n, up=True) == count
