"""The operations on tensors: the numbers are Pillow's, the slopes are those of the formulas without rounding."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from leaktight.core.errors import Refusal
from leaktight.core.torch_private import trace_graph
from leaktight.transforms import LIBRARY, Function, same_as
from leaktight.transforms.batched import apply_operation
from leaktight.transforms.differentiable import differentiable, to_pixels, truncate

DISTINCT = [function for function in LIBRARY if same_as(function.index) == function.index and not function.identity]
SLACK = {"shearY": 1.0, "autocontrast": 1.0}
"""Where Pillow computes in double precision a number at the edge of a step may fall to the other side: one level, rarely."""
named = pytest.mark.parametrize("function", DISTINCT, ids=lambda function: f"{function.index}-{function.operation}")


def levels(count: int, shape: tuple[int, ...], *, low: int = 0, high: int = 256) -> Tensor:
    return torch.from_numpy(np.random.default_rng(0).integers(low, high, (count, *shape)).astype(np.float32))


@named
@pytest.mark.parametrize("shape", [(1, 32, 32), (3, 32, 32), (3, 9, 7), (1, 2, 5), (3, 1, 1)], ids=str)
def test_the_numbers_are_those_of_pillow(function: Function, shape: tuple[int, ...]) -> None:
    for low, high in ((0, 256), (60, 130)):
        pixels = levels(8, shape, low=low, high=high)
        for sign in (1, -1):
            found = differentiable(function, shape, sign)(pixels)
            wanted = apply_operation(function.operation, pixels.numpy().astype(np.uint8), function.value, sign)
            away = (found - torch.tensor(wanted)).abs()
            assert away.max() <= SLACK.get(function.operation, 0.0)
            if shape[1] == 32:
                assert (away > 0).float().mean() < 0.01


GREY = [(function, 1) for function in DISTINCT if function.index in (1, 12)]


@pytest.mark.parametrize(("function", "channels"), [*((function, 3) for function in DISTINCT), *GREY])
def test_it_can_be_mapped_differentiated_and_traced(function: Function, channels: int) -> None:
    shape = (channels, 8, 10)
    pixels = levels(6, shape).view(3, 2, *shape)
    change = differentiable(function, shape, -1)

    def slopes(many: Tensor) -> Tensor:
        return torch.func.vmap(torch.func.grad(lambda few: change(few).square().sum()))(many)

    assert torch.equal(torch.func.vmap(change)(pixels), change(pixels.flatten(0, 1)).view_as(pixels))
    other = pixels.flip(-1)
    graph = trace_graph(slopes, pixels)
    assert torch.equal(graph(other), slopes(other))
    assert slopes(pixels).isfinite().all()
    assert slopes(pixels).abs().sum() > 0


def jacobian(function: Function, pixels: Tensor, sign: int = 1) -> Tensor:
    shape = tuple(pixels.shape[1:])
    found: Tensor = torch.func.jacrev(differentiable(function, shape, sign))(pixels)
    return found.reshape(pixels.numel(), pixels.numel())


@pytest.mark.parametrize(("index", "slope"), [(0, -1.0), (11, 1.0), (9, 1.0), (45, 1.0)])
def test_slopes_of_what_treats_pixels_alike(index: int, slope: float) -> None:
    pixels = levels(1, (1, 20, 20), low=5, high=200)[..., :4, :4]
    assert torch.equal(jacobian(LIBRARY[index], pixels), slope * torch.eye(16))


def test_slopes_of_brightness_end_where_it_is_cut() -> None:
    pixels = torch.tensor([[[[100.0, 200.0]]]])
    assert torch.equal(jacobian(LIBRARY[15], pixels, 1), torch.diag(torch.tensor([1.5, 0.0])))
    assert torch.equal(jacobian(LIBRARY[15], pixels, -1), torch.diag(torch.tensor([0.5, 0.5])))


def test_slopes_of_solarize_turn_at_the_threshold() -> None:
    pixels = torch.tensor([[[[142.0, 143.0]]]])
    assert jacobian(LIBRARY[37], pixels).diagonal().tolist() == [1.0, -1.0]


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("index", [1, 4, 6, 10, 12, 18])
def test_slopes_of_blends_and_shears_are_those_of_finite_differences(index: int, sign: int) -> None:
    """Far from black and white these are linear but for the rounding, so a large step shows their slope."""
    channels = 3 if LIBRARY[index].operation == "color" else 1
    pixels, step = levels(1, (channels, 6, 5), low=110, high=140), 20.0
    change = differentiable(LIBRARY[index], (channels, 6, 5), sign)
    slopes = jacobian(LIBRARY[index], pixels, sign)
    for place in range(pixels.numel()):
        there = torch.zeros_like(pixels).view(-1).index_fill(0, torch.tensor(place), step).view_as(pixels)
        difference = (change(pixels + there) - change(pixels - there)).view(-1) / (2 * step)
        # Rounding moves each side by at most one level, and by half of one in what is blended with.
        assert (difference - slopes[:, place]).abs().max() < 1.6 / (2 * step) + 1e-5


@pytest.mark.parametrize("index", [2, 3, 7, 21])
def test_a_moved_pixel_has_slope_one_at_its_new_place_and_a_bare_one_none(index: int) -> None:
    pixels = levels(1, (1, 12, 12))
    slopes = jacobian(LIBRARY[index], pixels)
    assert set(slopes.unique().tolist()) == {0.0, 1.0}
    found = differentiable(LIBRARY[index], (1, 12, 12))(pixels).view(-1)
    moved = slopes.sum(1) == 1
    assert torch.equal((slopes @ pixels.view(-1))[moved], found[moved])
    assert found[~moved].unique().tolist() == [128.0 if LIBRARY[index].operation == "rotate" else 0.0]


def test_autocontrast_stretches_with_the_slope_of_the_range() -> None:
    pixels = torch.tensor([[[[50.0, 60.0, 70.0, 101.0]]]])
    slopes = jacobian(LIBRARY[8], pixels)
    assert slopes[1, 1].item() == pytest.approx(5.0)
    # A brighter black end moves all others down, most the dark ones.
    assert slopes[1, 0].item() == pytest.approx(-5.0 * 41 / 51)
    flat = torch.full((1, 1, 2, 2), 9.0)
    assert torch.equal(jacobian(LIBRARY[8], flat), torch.eye(4))


def test_steps_and_rounding() -> None:
    numbers = torch.tensor([-3.0, 0.9, 1.0, 254.99, 300.0], requires_grad=True)
    found = truncate(numbers)
    assert found.tolist() == [0, 0, 1, 254, 255]
    found.sum().backward()
    assert numbers.grad is not None
    assert numbers.grad.tolist() == [0, 1, 1, 1, 0]
    images = torch.tensor([0.0, 0.499 / 255, 0.501 / 255, 1.0], requires_grad=True)
    pixels = to_pixels(images)
    assert pixels.tolist() == [0, 0, 1, 255]
    pixels.sum().backward()
    assert images.grad is not None
    assert images.grad.tolist() == [255] * 4


@pytest.mark.parametrize("shape", [(2, 8, 8), (64,), (1, 3, 8, 8)], ids=str)
def test_what_is_no_image_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(Refusal, match=r"A transformation needs images of 1 or 3 channels\. Got examples of shape"):
        differentiable(LIBRARY[0], shape)
