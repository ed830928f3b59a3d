"""Columns are the same convolution, to the second derivative, under a map and when traced."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from leaktight.attacks import columns
from leaktight.attacks.columns import AsColumns

CASES = [
    {"channels": 3, "size": (9, 7), "kernel": (5, 5), "stride": 2, "padding": 2, "bias": True},
    {"channels": 1, "size": (8, 8), "kernel": (3, 2), "stride": (1, 2), "padding": (0, 1), "bias": False},
    {"channels": 4, "size": (6, 6), "kernel": (1, 1), "stride": 3, "padding": 0, "bias": True},
]


def example(channels, size, kernel, stride, padding, bias):
    torch.manual_seed(0)
    images = torch.randn(5, 2, channels, *size, dtype=torch.float64)
    weight = torch.randn(6, channels, *kernel, dtype=torch.float64)
    offset = torch.randn(6, dtype=torch.float64) if bias else None
    return images, weight, offset, stride, padding


def matched(images: Tensor, weight: Tensor, offset: Tensor | None, stride, padding) -> Tensor:
    """Return an objective that depends on the gradient of the weights, as that of a search does."""

    def loss(weight: Tensor) -> Tensor:
        return F.conv2d(images, weight, offset, stride, padding).tanh().square().sum()

    return torch.func.grad(loss)(weight).pow(3).sum()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_output_and_second_derivative_are_the_convolution_s(case):
    images, *rest = example(**case)
    plain = F.conv2d(images[0], *rest)
    gradient = torch.func.vmap(torch.func.grad(lambda one: matched(one, *rest)))
    expected = gradient(images)
    with AsColumns():
        torch.testing.assert_close(F.conv2d(images[0], *rest), plain)
        torch.testing.assert_close(gradient(images), expected)


def test_only_what_is_small_and_plain_is_taken(monkeypatch):
    taken = []
    unfold = columns._unfold
    monkeypatch.setattr(columns, "_unfold", lambda *inputs: taken.append(1) or unfold(*inputs))
    wide, narrow = torch.randn(1, 5, 8, 8), torch.randn(1, 4, 8, 8)
    with AsColumns():
        F.conv2d(wide, torch.randn(2, 5, 3, 3))
        F.conv2d(narrow, torch.randn(4, 2, 3, 3), groups=2)
        F.conv2d(narrow, torch.randn(2, 4, 3, 3), dilation=2)
        F.conv2d(narrow, torch.randn(2, 4, 3, 3), padding="same")
        F.conv2d(torch.randn(1, 3, 200, 200), torch.randn(2, 3, 7, 7))
        assert not taken
        F.conv2d(narrow, torch.randn(2, 4, 3, 3))
    assert taken == [1]
