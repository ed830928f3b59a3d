"""A linear layer with what comes behind it: its slopes are those of autograd, and a ReLU is told from what is none."""

import pytest
import torch
from torch import nn

from leaktight.attacks.linear_layer import LinearLayer, augment, first_linear_of_inputs
from leaktight.core.task import Model
from leaktight.learning import classification
from leaktight.models import MLP, LeNet


def test_slopes_are_those_of_each_example_and_label(rectified):
    layer, batch, gradient = rectified(3)
    seen = augment(layer.task.model.normalise(batch.inputs).flatten(1), torch.ones(3))
    slopes = layer.slopes(seen)
    assert slopes.shape == (3, 5, 96)
    own = slopes[torch.arange(3), batch.labels] / 3
    # The gradient of the layer is the sum of slopes times what it saw.
    torch.testing.assert_close(own.T @ seen, gradient, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize(
    ("activation", "expected"), [("relu", True), ("sigmoid", False), ("tanh", False)], ids=["relu", "sigmoid", "tanh"]
)
def test_a_relu_is_told_from_others(activation, expected):
    task = classification(MLP(hidden=(16,), activation=activation).build((1, 4, 4), 3, seed=0), (1, 4, 4), 3)
    layer = LinearLayer.of(task, task.public_parameters(), "body.linear1")
    seen = torch.randn(4, 17, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert layer.is_rectified(seen) is expected


def test_the_box_is_that_of_the_pixels(rectified):
    layer, batch, _ = rectified(4)
    seen = augment(layer.task.model.normalise(batch.inputs).flatten(1), torch.ones(4))
    assert layer.outside(seen).max() < 1e-6
    beyond = augment(layer.task.model.normalise(batch.inputs + 0.5).flatten(1), torch.ones(4))
    torch.testing.assert_close(
        layer.outside(beyond), (batch.inputs + 0.5 - 1).clamp(min=0).flatten(1).amax(1).double(), rtol=1e-4, atol=1e-6
    )


def test_the_first_layer_must_see_the_inputs():
    assert first_linear_of_inputs(MLP().build((1, 4, 4), 3, seed=0), 16) == "body.linear1"
    assert first_linear_of_inputs(LeNet().build((1, 28, 28), 3, seed=0), 784) is None
    assert first_linear_of_inputs(Model(nn.Linear(16, 4, bias=False), nn.Linear(4, 2)), 16) is None
