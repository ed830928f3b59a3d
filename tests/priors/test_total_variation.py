from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from leaktight.core.errors import InvalidValue, Refusal
from leaktight.core.task import Normalise
from leaktight.priors import TotalVariation
from leaktight.priors.total_variation import total_variation


def test_it_is_the_mean_difference_of_neighbours_down_plus_across() -> None:
    images = torch.rand(3, 2, 5, 4, generator=torch.Generator().manual_seed(0))
    down = np.abs(np.diff(images.numpy(), axis=2)).mean()
    across = np.abs(np.diff(images.numpy(), axis=3)).mean()
    assert total_variation(images).item() == pytest.approx(down + across)


def test_colours_count_their_differences_as_further_channels() -> None:
    images = torch.rand(2, 3, 5, 5, generator=torch.Generator().manual_seed(0))
    pairs = [images[:, [a]] - images[:, [b]] for a, b in ((0, 1), (0, 2), (1, 2))]
    torch.testing.assert_close(total_variation(images, colours=True), total_variation(torch.cat([images, *pairs], 1)))
    assert torch.equal(total_variation(images[:, :1], colours=True), total_variation(images[:, :1]))


def test_the_penalty_is_the_weight_times_that_of_what_the_network_sees() -> None:
    normalise = Normalise([0.4, 0.5, 0.6], [0.2, 0.3, 0.4])
    coordinates = TotalVariation(weight=0.7, colours=True).coordinates((3, 6, 5), normalise, None, 2)
    inputs, targets = torch.rand(4, 3, 6, 5, generator=torch.Generator().manual_seed(0)), torch.zeros(4, 2)
    penalty = coordinates.penalty(coordinates.encode(inputs, targets), inputs)
    torch.testing.assert_close(penalty, 0.7 * total_variation(normalise(inputs), colours=True))


def test_an_image_of_one_row_varies_across_only() -> None:
    image = torch.tensor([0.0, 1.0, 3.0]).view(1, 1, 1, 3)
    assert total_variation(image).item() == 1.5
    assert total_variation(image[..., :1]).item() == 0


@pytest.mark.parametrize("shape", [(5,), (4, 5), (1, 2, 3, 4)])
def test_what_is_no_image_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(
        Refusal, match=r"for images of shape \(channels, height, width\). Got inputs of shape .* take `flat`"
    ):
        TotalVariation().coordinates(shape, nn.Identity(), None, 2)


def test_inputs_of_other_dimensions_have_no_total_variation() -> None:
    with pytest.raises(Refusal, match=r"for images, four dimensions with that of the examples\. Got 2 instead\."):
        total_variation(torch.zeros(4, 5))


def test_a_weight_below_zero_is_refused() -> None:
    with pytest.raises(InvalidValue, match=r"The `weight` of total_variation must be at least 0\. Got -1 instead\."):
        TotalVariation(weight=-1)
