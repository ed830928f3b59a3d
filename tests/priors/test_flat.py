from __future__ import annotations

import torch
from torch import nn

from leaktight.core.task import Normalise
from leaktight.priors import Flat

TARGETS = torch.zeros(2, 3)


def test_the_search_runs_in_the_units_that_the_network_sees() -> None:
    normalise = Normalise([0.1, 0.2, 0.3], [0.5, 0.25, 2.0])
    coordinates = Flat().coordinates((3, 4, 5), normalise, None, 3)
    inputs = torch.rand(2, 3, 4, 5, generator=torch.Generator().manual_seed(0))
    assert torch.equal(coordinates.encode(inputs, TARGETS), normalise(inputs).flatten(1))


def test_inputs_that_the_network_does_not_scale_are_their_own_coordinates() -> None:
    coordinates = Flat().coordinates((6,), nn.Identity(), None, 3)
    inputs = torch.rand(2, 6, generator=torch.Generator().manual_seed(0))
    assert torch.equal(coordinates.encode(inputs, TARGETS), inputs)


def test_every_example_is_as_likely_as_any_other() -> None:
    coordinates = Flat().coordinates((6,), nn.Identity(), None, 3)
    z = torch.full((2, 6), 1e9)
    assert coordinates.penalty(z, z).item() == 0
