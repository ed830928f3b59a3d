"""A network in memory: its own weights, whatever the seed, and never changed."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from leaktight.core.errors import InvalidValue
from leaktight.core.in_memory import hold
from leaktight.models import InMemory, from_text


@pytest.fixture
def module():
    return nn.Sequential(nn.Flatten(), nn.Linear(48, 5), nn.ReLU(), nn.Linear(5, 3))


def test_the_model_has_the_modules_weights_whatever_the_seed(module):
    inputs, before = torch.rand(4, 3, 4, 4), copy.deepcopy(module.state_dict())
    with hold({("model", "Net"): module}):
        network = InMemory(name="Net")
        models = [network.build((3, 4, 4), 3, seed) for seed in (0, 1)]
        assert network.size((3, 4, 4), 3) == 48 * 5 + 5 + 5 * 3 + 3
    for model in models:
        assert torch.equal(model(inputs), module(inputs))
        assert model.head.weight.data_ptr() != module[3].weight.data_ptr()
    assert all(torch.equal(before[name], tensor) for name, tensor in module.state_dict().items())


def test_a_module_that_does_not_fit_is_told_why(module):
    with hold({("model", "Net"): module}), pytest.raises(InvalidValue, match=r"does not run on examples of shape \(1,"):
        InMemory(name="Net").build((1, 8, 8), 3, seed=0)


def test_it_cannot_be_named_on_the_command_line():
    with pytest.raises(InvalidValue, match="There is no model named `in_memory`"):
        from_text("in_memory")
