from __future__ import annotations

import torch
from torch import nn

from leaktight.core.task import Normalise
from leaktight.priors.network_units import network_units


def test_shift_and_scale_lead_from_what_the_network_sees_to_natural_units() -> None:
    normalise = Normalise([0.1, 0.2, 0.3], [0.5, 0.25, 2.0])
    inputs = torch.rand(2, 3, 4, 5, generator=torch.Generator().manual_seed(0))
    shift, scale = network_units(normalise, (3, 4, 5))
    torch.testing.assert_close(normalise(inputs) * scale + shift, inputs)


def test_any_other_module_leaves_units_as_they_are() -> None:
    shift, scale = network_units(nn.BatchNorm2d(3), (3, 4, 5))
    assert (shift.item(), scale.item()) == (0.0, 1.0)
