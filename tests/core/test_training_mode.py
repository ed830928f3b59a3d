"""Batch norm and dropout in training mode: the same numbers as torch's own layers, without their side effects."""

import copy

import pytest
import torch
from torch import nn

from leaktight.core.errors import Refusal
from leaktight.core.task import Model, Task
from leaktight.core.training_mode import BatchNorm, Dropout, TrainingPass
from leaktight.learning.task import as_scores, cross_entropy
from leaktight.models.mode import set_modes
from leaktight.testing import normed_task


def used(make, *size):
    """A layer of torch with statistics and weights of its own, and our twin of it."""
    torch.manual_seed(0)
    layer = make(size[0])
    for tensor in (*layer.parameters(), *layer.buffers()):
        if tensor.is_floating_point():
            nn.init.uniform_(tensor, 0.5, 1.5)
    return layer, BatchNorm(copy.deepcopy(layer))


@pytest.mark.parametrize(
    ("make", "size"),
    [(nn.BatchNorm1d, (3,)), (nn.BatchNorm1d, (3, 5)), (nn.BatchNorm2d, (3, 4, 4)), (nn.BatchNorm3d, (3, 2, 2, 2))],
)
@pytest.mark.parametrize("mode", [True, False])
def test_batch_norm_is_torchs(make, size, mode):
    layer, twin = used(make, *size)
    layer.train(mode)
    twin.train(mode)
    inputs, weights = torch.randn(6, *size, requires_grad=True), torch.randn(6, *size)
    outputs = [each(inputs) for each in (twin, layer)]
    torch.testing.assert_close(*outputs)
    gradients = [
        torch.autograd.grad((output * weights).sum(), [inputs, *each.parameters()])
        for output, each in zip(outputs, (twin, layer), strict=True)
    ]
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-5)


def test_running_statistics_follow_as_torchs_do_and_the_layer_stays_as_it_is():
    layer, twin = used(nn.BatchNorm2d, 3)
    model = Model(twin, nn.Linear(3, 2))
    before, inputs = model.running(), torch.randn(4, 3, 5, 5)
    with model.training_pass(TrainingPass(running=dict(before))) as left:
        twin(inputs)
    layer(inputs)
    torch.testing.assert_close(left.running["body.running_mean"], layer.running_mean)
    torch.testing.assert_close(left.running["body.running_var"], layer.running_var)
    torch.testing.assert_close(left.batch["body.running_mean"], inputs.mean((0, 2, 3)))
    torch.testing.assert_close(left.batch["body.running_var"], inputs.transpose(0, 1).flatten(1).var(1))
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.running().items())


def test_without_affine_parameters_it_only_normalises():
    layer = nn.BatchNorm2d(3, affine=False)
    inputs = torch.randn(4, 3, 5, 5)
    torch.testing.assert_close(BatchNorm(copy.deepcopy(layer))(inputs), layer(inputs))


def test_one_value_in_a_channel_cannot_be_normalised_by_itself():
    model = Model(BatchNorm(nn.BatchNorm1d(3)), nn.Linear(3, 2))
    task = Task(model, cross_entropy, as_scores, (3,), 2)
    with pytest.raises(
        Refusal, match=r"Batch norm `body` cannot normalise a batch of 1 .* Use a batch size of at least 2"
    ):
        task.training_forward(model.tensors(), torch.rand(1, 3), running=model.running())


def test_dropout_multiplies_by_the_mask_of_each_use():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.drop = nn.Dropout(0.25)

        def forward(self, inputs):
            return self.drop(self.drop(inputs)[:, :2])

    model = Model(set_modes(Twice(), "train"), nn.Linear(2, 2))
    task = Task(model, cross_entropy, as_scores, (4,), 2)
    dropped = task.dropouts()
    assert {use: (each.shape, each.rate) for use, each in dropped.items()} == {
        "body.drop#1": ((4,), 0.25),
        "body.drop#2": ((2,), 0.25),
    }
    masks = {"body.drop#1": torch.tensor([[2.0, 0.0, 1.0, 1.0]]), "body.drop#2": torch.tensor([[3.0, 1.0]])}
    outputs, _ = task.training_forward(model.tensors(), torch.ones(1, 4), masks)
    torch.testing.assert_close(outputs, model.head(torch.tensor([[6.0, 0.0]])))
    torch.testing.assert_close(task.forward(model.tensors(), torch.ones(1, 4)), model.head(torch.ones(1, 2)))


def test_dropout_of_channels_has_one_number_for_each():
    model = Model(nn.Sequential(Dropout(nn.Dropout2d(0.5)), nn.Flatten()), nn.Linear(8, 2))
    [dropped] = Task(model, cross_entropy, as_scores, (2, 2, 2), 2).dropouts().values()
    assert dropped.shape == (2, 1, 1)


def test_in_evaluation_mode_nothing_is_dropped_and_nothing_followed():
    task = normed_task(dropout=0.5)
    task.model.eval()
    before = task.model.running()
    inputs = torch.rand(3, *task.shape)
    assert not task.dropouts()
    together, left = task.training_forward(task.model.tensors(), inputs, running=before)
    alone, _ = task.training_forward(task.model.tensors(), inputs[:1], running=before)
    torch.testing.assert_close(together[:1], alone)
    assert not left.batch
    assert all(torch.equal(left.running[name], before[name]) for name in before)


def test_layers_that_are_frozen_or_in_evaluation_mode_stay():
    module = nn.Sequential(nn.BatchNorm2d(3).eval(), nn.Dropout(0.5).eval(), nn.BatchNorm2d(3), nn.Dropout(0.0))
    changed = set_modes(module, "train")
    assert [type(layer) for layer in changed] == [nn.BatchNorm2d, nn.Dropout, BatchNorm, nn.Dropout]
    assert not changed[0].training
    assert isinstance(module[2], nn.BatchNorm2d)
    assert changed.state_dict().keys() == {name for name in module.state_dict() if name != "2.num_batches_tracked"}


def test_it_can_be_mapped_and_differentiated_twice():
    task = normed_task()
    parameters, running = task.model.tensors(), task.model.running()
    labels = torch.tensor([0, 1])

    def energy(inputs):
        def loss(tensors):
            outputs, left = task.training_forward(tensors, inputs, running=running)
            return task.loss(outputs, labels).mean(), left.running

        gradients, after = torch.func.grad(loss, has_aux=True)(parameters)
        return sum(gradient.square().sum() for gradient in gradients.values()), after

    inputs = torch.rand(5, 2, *task.shape)
    slopes, after = torch.func.vmap(torch.func.grad(energy, has_aux=True))(inputs)
    assert slopes.shape == inputs.shape
    assert slopes.abs().sum() > 0
    for row in range(5):
        _, left = task.training_forward(parameters, inputs[row], running=running)
        torch.testing.assert_close(after["body.1.running_var"][row], left.running["body.1.running_var"])
