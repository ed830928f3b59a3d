"""ResNet10: its size, the sign of its features, and scores that are cosines."""

from __future__ import annotations

import itertools

import pytest
import torch

from leaktight.models import LeNet, ResNet10


def test_four_blocks_end_in_eight_times_the_width() -> None:
    model = ResNet10().build((3, 32, 32), classes=10, seed=0)
    widths = 64, 64, 128, 256, 512
    convolutions = 3 * 64 * 9 + sum(a * b * 9 + b * b * 9 for a, b in itertools.pairwise(widths))
    norms = 2 * 64 + sum(4 * width for width in widths[1:])
    assert sum(parameter.numel() for parameter in model.parameters()) == convolutions + norms + 513 * 10
    assert model.body(torch.rand(2, 3, 32, 32)).shape == (2, 512)


def test_tanh_makes_features_of_both_signs_and_relu_does_not() -> None:
    inputs = torch.rand(4, 3, 32, 32)
    signed, positive = (
        ResNet10(width=4, end=end).build((3, 32, 32), 10, seed=0).body(inputs) for end in ("tanh", "relu")
    )
    assert signed.min() < 0 < signed.max()
    assert positive.min() >= 0


def test_scores_of_the_cosine_head_are_cosines_times_the_factor() -> None:
    model = ResNet10(width=2, head="cosine", factor=3).build((1, 16, 16), classes=5, seed=0)
    inputs = torch.rand(6, 1, 16, 16)
    features, weights = model.features(inputs), model.head.weight
    expected = 3 * torch.cosine_similarity(features[:, None], weights[None], dim=2)
    torch.testing.assert_close(model(inputs), expected)


@pytest.mark.parametrize("scale", [2.0, 0.5])
def test_instance_norm_takes_off_what_brightens_each_channel_of_each_example(scale: float) -> None:
    model = LeNet(norm="instance").build((1, 28, 28), classes=3, seed=0)
    inputs = torch.rand(2, 1, 28, 28)
    hidden = model.body.norm1(model.body.conv1(inputs))
    torch.testing.assert_close(hidden.mean((2, 3)), torch.zeros(2, 6), atol=1e-5, rtol=0)
    torch.testing.assert_close(model.body.norm1(scale * model.body.conv1(inputs) + 1), hidden, atol=1e-2, rtol=1e-2)
