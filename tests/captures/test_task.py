"""A person's module becomes a task whose messages carry the module's own names."""

import pytest
import torch
from torch import nn

from leaktight.captures.task import mixing_layers, outputs_in, random_layers, task_of
from leaktight.core.errors import InvalidValue
from leaktight.core.task import Batch
from leaktight.learning.gradient import gradient
from leaktight.models.weights import load_state


class Net(nn.Module):
    """A module with names of its own, whose head is not its last attribute."""

    def __init__(self):
        super().__init__()
        self.classifier = nn.Linear(6, 3)
        self.features = nn.Sequential(nn.Flatten(), nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Dropout(0.5))

    def forward(self, inputs):
        return self.classifier(self.features(inputs).relu())


def test_names_are_those_of_the_state_dict():
    net = Net().eval()
    names = set(task_of(net, (1, 2, 2), 3).public_parameters())
    assert names == {name for name, _ in net.named_parameters()}


def test_the_gradient_is_the_modules_own():
    net, inputs, labels = Net().eval(), torch.rand(2, 1, 2, 2), torch.tensor([0, 2])
    task = task_of(net, (1, 2, 2), 3)
    nn.functional.cross_entropy(net(inputs), labels).backward()
    tensors = task.outward(gradient(task, task.model.tensors(), Batch(inputs, labels)).tensors)
    for name, parameter in net.named_parameters():
        assert torch.allclose(tensors[name], parameter.grad, atol=1e-6)


def test_standardisation_outside_the_module_becomes_part_of_the_task():
    net, inputs = Net().eval(), torch.rand(2, 1, 2, 2)
    task = task_of(net, (1, 2, 2), 3, statistics=((0.5,), (0.25,)))
    assert torch.allclose(task.model(inputs), net((inputs - 0.5) / 0.25), atol=1e-6)


def test_a_linear_module_is_its_own_head():
    assert list(task_of(nn.Linear(4, 2), (4,), 2).public_parameters()) == ["weight", "bias"]


def test_captured_parameters_and_buffers_are_loaded_by_name():
    source, net = Net(), Net()
    source(torch.rand(8, 1, 2, 2))
    load_state(net, source.state_dict(), "The capture")
    assert torch.equal(net.features[2].running_mean, source.features[2].running_mean)
    assert torch.equal(net.classifier.weight, source.classifier.weight)


def test_a_state_of_another_model_is_one_sentence():
    state = Net().state_dict()
    with pytest.raises(InvalidValue, match=r"The capture must hold `classifier.weight` like the model"):
        load_state(Net(), {name: state[name] for name in state if name != "classifier.weight"}, "The capture")
    with pytest.raises(InvalidValue, match=r"`classifier.bias` of the capture must have the shape \(3,\)"):
        load_state(Net(), {**state, "classifier.bias": torch.zeros(4)}, "The capture")


def test_layers_that_mix_or_draw_are_named():
    assert mixing_layers(Net()) == ["features.2"]
    assert random_layers(Net()) == ["features.3"]


def test_how_many_outputs_there_are():
    assert outputs_in(Net().eval(), (1, 2, 2)) == 3
    assert outputs_in(Net().eval(), (5,)) is None
    assert outputs_in(nn.Identity(), (1, 2, 2)) is None
