"""Generators: images of every size that is asked for, weights that follow from the seed, and the architecture of DCGAN."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from leaktight.core.errors import InvalidValue
from leaktight.core.random import stream
from leaktight.models import Generator

SMALL = Generator(noise=10, width=2)


def noise(count, length=10, seed=0):
    return 2 * torch.rand(count, length, generator=stream(seed, "noise")) - 1


@pytest.mark.parametrize(
    "shape",
    [
        (1, 28, 28),
        (3, 28, 28),
        (1, 32, 32),
        (3, 32, 32),
        (1, 64, 64),
        (3, 64, 64),
        (1, 8, 8),
        (1, 4, 4),
        (1, 12, 20),
        (2, 60, 44),
    ],
)
def test_images_have_the_shape_that_was_asked_for_and_pixels_in_the_open_unit_interval(shape):
    images = SMALL.build(shape, seed=0)(noise(3))
    assert tuple(images.shape) == (3, *shape)
    assert images.min() > 0
    assert images.max() < 1


@pytest.mark.parametrize(
    ("side", "start", "doublings"), [(28, 7, 2), (32, 4, 3), (64, 4, 4), (12, 3, 2), (8, 2, 2), (56, 7, 3)]
)
def test_each_doubling_halves_the_channels_from_a_small_map(side, start, doublings):
    made = Generator(noise=10, width=3).build((1, side, side), seed=0)
    layers = [layer for layer in made if isinstance(layer, nn.ConvTranspose2d)]
    wide = 3 * 2 ** (doublings - 1)
    assert made.linear.out_features == wide * start**2
    expected = [(wide // 2**number, wide // 2 ** (number + 1)) for number in range(doublings - 1)] + [(3, 1)]
    assert [(layer.in_channels, layer.out_channels) for layer in layers] == expected
    assert {(layer.kernel_size, layer.stride, layer.padding) for layer in layers} == {((4, 4), (2, 2), (1, 1))}


def test_sides_that_differ_are_doubled_as_often_as_the_shorter_one_allows():
    made = SMALL.build((1, 64, 12), seed=0)
    assert made.map.unflattened_size == (4, 16, 3)


def test_the_forward_pass_is_that_of_the_layers_by_hand():
    made = SMALL.build((1, 8, 8), seed=1)
    z = noise(5)
    found = (z @ made.linear.weight.T + made.linear.bias).view(5, 4, 2, 2)
    for number in (0, 1):
        layer = made.get_submodule(f"norm{number}")
        mean, spread = found.mean((0, 2, 3), keepdim=True), found.var((0, 2, 3), unbiased=False, keepdim=True)
        scaled = (found - mean) / (spread + layer.eps).sqrt()
        found = (scaled * layer.weight.view(1, -1, 1, 1) + layer.bias.view(1, -1, 1, 1)).clamp_min(0)
        conv = made.get_submodule(f"conv{number + 1}")
        found = nn.functional.conv_transpose2d(found, conv.weight, conv.bias, stride=2, padding=1)
    torch.testing.assert_close(made(z), 1 / (1 + (-found).exp()))


def test_initial_weights_follow_from_the_seed_alone_and_the_global_generator_is_left_alone():
    before = torch.random.get_rng_state()
    one, same, other = (SMALL.build((1, 8, 8), seed=seed).state_dict() for seed in (0, 0, 1))
    assert torch.equal(before, torch.random.get_rng_state())
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not torch.equal(one["linear.weight"], other["linear.weight"])


def test_weights_start_as_those_of_dcgan_do():
    made = Generator(width=16).build((1, 32, 32), seed=0)
    for layer in made:
        if isinstance(layer, nn.Linear | nn.ConvTranspose2d):
            assert layer.weight.std().item() == pytest.approx(0.02, rel=0.15)
            assert layer.weight.mean().abs() < 0.005
            assert not layer.bias.any()
        if isinstance(layer, nn.BatchNorm2d):
            assert layer.weight.mean().item() == pytest.approx(1, abs=0.02)
            assert not layer.bias.any()


def test_a_generator_is_its_parameters_and_nothing_else():
    made = SMALL.build((1, 8, 8), seed=0)
    assert not list(made.buffers())
    one = made(noise(6))
    made.eval()
    assert torch.equal(made(noise(6)), one)


@pytest.mark.parametrize("shape", [(1, 30, 28), (1, 28, 27), (784,), (1, 0, 4), (0, 8, 8), (1, 2, 8)])
def test_other_shapes_are_refused_in_a_sentence(shape):
    with pytest.raises(InvalidValue, match=r"A generator makes images .* whose sides are multiples of 4. Got shape"):
        SMALL.build(shape, seed=0)


@pytest.mark.parametrize("settings", [{"noise": 0}, {"width": 0}])
def test_settings_out_of_range_are_an_error(settings):
    with pytest.raises(InvalidValue, match=r"must be at least 1. Got 0 instead"):
        Generator(**settings)


def test_it_can_learn_to_make_one_picture():
    made = Generator(noise=10, width=8).build((1, 8, 8), seed=0)
    wanted = torch.zeros(1, 8, 8)
    wanted[..., :4] = 1
    steps = torch.optim.Adam(made.parameters(), 0.01)
    for step in range(80):
        loss = (made(noise(16, seed=step)) - wanted).square().mean()
        steps.zero_grad()
        loss.backward()
        steps.step()
    assert torch.equal(made(noise(16, seed=100)).mean(0) > 0.5, wanted > 0.5)
