"""Embeddings and the wide part, against the same written out."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from leaktight.data import Columns
from leaktight.models.tabular import Encoded, Wide

MIXED = Columns(("a", "x", "b", "y"), (0, 3, 0, 5))
ROWS = torch.tensor([[0.5, 2.0, -1.0, 0.0], [1.5, 0.0, 2.0, 4.0]])


def test_rows_are_encoded_as_separate_embeddings_would():
    layer = Encoded(MIXED, embedding=2)
    first, second = layer.ids.table.weight[:3], layer.ids.table.weight[3:]
    expected = torch.stack(
        [
            torch.cat([torch.tensor([0.5, -1.0]), first[2], second[0]]),
            torch.cat([torch.tensor([1.5, 2.0]), first[0], second[4]]),
        ]
    )
    assert torch.equal(layer(ROWS), expected)
    assert layer.width == 6


@pytest.mark.parametrize("ids", [(0, 0), (4, 2)])
def test_rows_of_one_sort_only_are_encoded_too(ids):
    layer = Encoded(Columns(("a", "b"), ids), embedding=3)
    assert layer(torch.tensor([[1.0, 1.0]])).shape == (1, layer.width)


def test_the_wide_part_is_a_linear_model_of_numbers_and_one_hot_categories():
    layer = Wide(MIXED, classes=2)
    with torch.no_grad():
        for number, parameter in enumerate(layer.parameters()):
            parameter.copy_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(number)))
    one_hot = torch.cat(
        [nn.functional.one_hot(ROWS[:, 1].long(), 3), nn.functional.one_hot(ROWS[:, 3].long(), 5)], 1
    ).float()
    expected = ROWS[:, [0, 2]] @ layer.linear.weight.T + one_hot @ layer.ids.table.weight
    assert torch.allclose(layer(ROWS), expected, atol=1e-6)


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(0, 4), min_size=1, max_size=6), st.integers(1, 5))
def test_any_mix_of_columns_has_a_wide_part_that_starts_from_zero(ids, rows):
    layer = Wide(Columns(tuple("abcdef"[: len(ids)]), tuple(ids)), classes=3)
    found = layer(torch.zeros(rows, len(ids)))
    assert found.shape == (rows, 3)
    assert not found.any()
