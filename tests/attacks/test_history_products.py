from __future__ import annotations

import pytest
import torch

from leaktight.attacks.history_products import add_up, multiply


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("rows", "length", "used", "width"), [(1, 1, 1, 1), (3, 8, 5, 7), (16, 200, 200, 33)])
def test_products_and_sums_are_those_of_matrices(rows, length, used, width, dtype):
    generator = torch.Generator().manual_seed(rows)
    draw = {"generator": generator, "dtype": dtype}
    history, vectors = torch.randn(rows, length, width, **draw), torch.randn(rows, width, **draw)
    weights = torch.randn(rows, used, **draw)
    some = history[:, :used]
    torch.testing.assert_close(multiply(history, used, vectors), (some * vectors[:, None]).sum(2))
    torch.testing.assert_close(add_up(history, weights), (some * weights[:, :, None]).sum(1))


def test_vectors_that_do_not_count_are_not_read():
    history = torch.full((2, 3, 4), torch.nan)
    history[:, :2] = 1.0
    assert torch.equal(multiply(history, 2, torch.ones(2, 4)), torch.full((2, 2), 4.0))
    assert torch.equal(add_up(history, torch.ones(2, 2)), torch.full((2, 4), 2.0))


def test_another_length_of_the_history_has_other_places():
    long, short = torch.arange(12.0).view(2, 6, 1), torch.arange(8.0).view(2, 4, 1)
    ones = torch.ones(2, 1)
    assert multiply(long, 2, ones).tolist() == [[0, 1], [6, 7]]
    assert multiply(short, 2, ones).tolist() == [[0, 1], [4, 5]]
