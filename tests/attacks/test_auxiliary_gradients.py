"""Gradients of many batches at once: for every kind of network those that autograd makes of each batch by itself."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from leaktight.attacks import auxiliary_gradients
from leaktight.attacks.auxiliary_gradients import batch_gradients
from leaktight.core.random import global_seed
from leaktight.core.task import Batch, Model, Normalise
from leaktight.learning import classification, gradient
from leaktight.models import MLP, FaceAlexNet, ResNet20
from leaktight.testing.conformance import own_randomness, picture

IMAGE = (2, 8, 8)


class Tokens(nn.Module):
    """A linear layer that sees each row of an image: inputs of three dimensions."""

    def __init__(self) -> None:
        super().__init__()
        self.each = nn.Linear(8, 3)

    def forward(self, inputs):
        return self.each(inputs.flatten(1, 2)).flatten(1)


class Twice(nn.Module):
    """A linear layer that is passed twice."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(128, 128)

    def forward(self, inputs):
        return self.inner(torch.tanh(self.inner(inputs.flatten(1))))


class Borrowed(nn.Module):
    """A linear layer whose weight is used once more behind its back."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(128, 128)

    def forward(self, inputs):
        return torch.tanh(self.inner(inputs.flatten(1))) @ self.inner.weight


class Tied(nn.Module):
    """Two linear layers with one weight."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(128, 128), nn.Linear(128, 128)
        self.two.weight = self.one.weight

    def forward(self, inputs):
        return self.two(torch.tanh(self.one(inputs.flatten(1))))


class Words(nn.Module):
    """An embedding of ids, and a parameter that nobody uses."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.idle = nn.Embedding(10, 4), nn.Linear(3, 3)

    def forward(self, inputs):
        return self.table((inputs.flatten(1) * 9).long() % 10).mean(1)


class Patches(nn.Module):
    """A convolution that sees each example as four images."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(2, 3, 3)

    def forward(self, inputs):
        parts = inputs.unfold(2, 4, 4).unfold(3, 4, 4).permute(0, 2, 3, 1, 4, 5).flatten(0, 2)
        return self.conv(parts).view(len(inputs), -1)


def conv(outputs=4, **settings):
    return nn.Sequential(nn.Conv2d(2, outputs, 3, **settings), nn.ReLU(), nn.Flatten())


BODIES = {
    "linear": lambda: nn.Sequential(nn.Flatten(), nn.Linear(128, 9), nn.Tanh()),
    "no bias": lambda: nn.Sequential(nn.Flatten(), nn.Linear(128, 9, bias=False), nn.Tanh()),
    "in place": lambda: nn.Sequential(
        nn.Flatten(), nn.Linear(128, 9), nn.ReLU(inplace=True), nn.Linear(9, 5), nn.ReLU(inplace=True)
    ),
    "convolution": lambda: conv(padding=1),
    "stride": lambda: conv(stride=2, padding=2, bias=False),
    "groups": lambda: conv(groups=2, dilation=2),
    "same": lambda: conv(padding="same"),
    "circular": lambda: conv(padding=1, padding_mode="circular"),
    "one dimension": lambda: nn.Sequential(nn.Flatten(1, 2), nn.Conv1d(16, 3, 3), nn.Flatten()),
    "group norm": lambda: nn.Sequential(nn.Conv2d(2, 8, 3), nn.GroupNorm(2, 8), nn.ReLU(), nn.Flatten()),
    "layer norm": lambda: nn.Sequential(nn.Flatten(), nn.LayerNorm(128), nn.Linear(128, 9)),
    "three dimensions": Tokens,
    "twice": Twice,
    "borrowed": Borrowed,
    "tied": Tied,
    "embedding": Words,
    "patches": Patches,
}


def built(body, classes=3):
    with global_seed(3):
        made = body()
        width = made(torch.rand(2, *IMAGE)).shape[1]
        model = Model(made, nn.Linear(width, classes), Normalise((0.5, 0.4), (0.3, 0.2)))
    return classification(model, IMAGE, classes)


def pool_of(examples=30, shape=IMAGE, classes=3):
    rng = torch.Generator().manual_seed(1)
    return Batch(torch.rand(examples, *shape, generator=rng), torch.randint(classes, (examples,), generator=rng))


def draw_examples(examples=30, batches=12, size=8):
    return torch.randint(examples, (batches, size), generator=torch.Generator().manual_seed(2))


def require_same(task, parameters, pool, members):
    found = list(batch_gradients(task, parameters, pool, members))
    stacked = {name: torch.cat([part[name] for part in found]) for name in parameters}
    for place, row in enumerate(members):
        for name, wanted in gradient(task, parameters, pool.take(row)).tensors.items():
            assert stacked[name][place].shape == wanted.shape
            assert (stacked[name][place] - wanted).norm() <= 1e-5 * wanted.norm() + 1e-9, name
    return found


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_every_batch_has_the_gradient_that_autograd_gives_it(body):
    task = built(body)
    parameters = {name: 0.9 * tensor + 0.01 for name, tensor in task.model.tensors().items()}
    require_same(task, parameters, pool_of(), draw_examples())


@pytest.mark.parametrize("network", [MLP(hidden=(20, 10)), FaceAlexNet(), ResNet20(norm="group")], ids=str)
def test_so_do_the_papers_networks(network):
    shape = (3, 8, 8)
    task = classification(network.build(shape, 4, seed=0), shape, 4)
    require_same(task, task.model.tensors(), pool_of(12, shape, 4), draw_examples(12, batches=4))


def by_hand(monkeypatch):
    """Return a list of the parameters that `torch.func` was asked for, filled while the test runs."""
    asked = []
    own = auxiliary_gradients._rest
    monkeypatch.setattr(
        auxiliary_gradients,
        "_rest",
        lambda task, parameters, names, batch: asked.extend(names) or own(task, parameters, names, batch),
    )
    return asked


@pytest.mark.parametrize(
    ("name", "rest"),
    [
        ("linear", set()),
        ("in place", set()),
        ("groups", set()),
        ("group norm", {"body.1.weight", "body.1.bias"}),
        ("same", {"body.0.weight", "body.0.bias"}),
        ("three dimensions", {"body.each.weight", "body.each.bias"}),
        ("twice", {"body.inner.weight", "body.inner.bias"}),
        ("borrowed", {"body.inner.weight", "body.inner.bias"}),
        ("tied", {"body.one.weight", "body.one.bias", "body.two.bias"}),
        ("patches", {"body.conv.weight", "body.conv.bias"}),
    ],
)
def test_only_what_is_not_simple_goes_example_by_example(name, rest, monkeypatch):
    asked = by_hand(monkeypatch)
    task = built(BODIES[name])
    require_same(task, task.model.tensors(), pool_of(), draw_examples())
    assert set(asked) == rest


def test_a_loss_that_reads_a_parameter_is_noticed(monkeypatch):
    asked = by_hand(monkeypatch)
    task = built(BODIES["linear"])
    weight = task.model.head.weight

    class Penalised(nn.Module):
        def __init__(self, head):
            super().__init__()
            self.inner = head

        def forward(self, inputs):
            return self.inner(inputs) + self.inner.weight.square().sum() * torch.arange(3)

    task.model.head = Penalised(task.model.head)
    assert task.model.head.inner.weight is weight
    require_same(task, task.model.tensors(), pool_of(), draw_examples())
    assert set(asked) == {"head.inner.weight", "head.inner.bias"}


@pytest.mark.parametrize("body", ["convolution", "group norm"])
@pytest.mark.parametrize("bytes_", [1, 3000, 10**6])
@pytest.mark.parametrize("limit", ["PASSED", "KEPT", "AVERAGED", "HANDED"])
def test_memory_changes_nothing_but_the_pieces(limit, bytes_, body, monkeypatch):
    monkeypatch.setattr(auxiliary_gradients, limit, bytes_)
    task = built(BODIES[body])
    found = require_same(task, task.model.tensors(), pool_of(), draw_examples())
    size = 4 * sum(tensor.numel() for tensor in task.model.tensors().values())
    pieces = [len(part["head.bias"]) for part in found]
    assert sum(pieces) == 12
    assert max(pieces) == (min(12, max(1, bytes_ // size)) if limit == "HANDED" else 12)


def passes(monkeypatch):
    counted = []
    own = auxiliary_gradients._records
    monkeypatch.setattr(
        auxiliary_gradients,
        "_records",
        lambda task, parameters, layers, batch: counted.append(len(batch)) or own(task, parameters, layers, batch),
    )
    return counted


def test_each_example_is_passed_once_and_only_if_it_is_used(monkeypatch):
    counted = passes(monkeypatch)
    task, members = built(BODIES["convolution"]), draw_examples() // 2
    list(batch_gradients(task, task.model.tensors(), pool_of(), members))
    tried, *rest = counted
    assert tried == 8
    assert sum(rest) == len(members.unique()) <= 15


def test_a_small_pass_takes_few_examples_at_once(monkeypatch):
    monkeypatch.setattr(auxiliary_gradients, "PASSED", 1)
    counted = passes(monkeypatch)
    task = built(BODIES["convolution"])
    list(batch_gradients(task, task.model.tensors(), pool_of(), draw_examples()))
    assert counted[1:] == [1] * len(draw_examples().unique())


def test_batches_that_share_no_example_are_passed_one_by_one(monkeypatch):
    counted = passes(monkeypatch)
    task = built(BODIES["convolution"])
    require_same(task, task.model.tensors(), pool_of(), torch.arange(30).view(3, 10))
    assert counted == []


def test_an_example_may_be_in_a_batch_twice():
    task = built(BODIES["group norm"])
    require_same(task, task.model.tensors(), pool_of(), torch.tensor([[0, 0, 1], [2, 2, 2], [1, 0, 2]]))


def test_probabilities_serve_as_labels():
    task, pool = built(BODIES["convolution"]), pool_of()
    soft = Batch(pool.inputs, F.one_hot(pool.labels, 3).float() * 0.8 + 0.2 / 3)
    members = draw_examples()
    [found] = batch_gradients(task, task.model.tensors(), soft, members)
    wanted = gradient(task, task.model.tensors(), soft.take(members[0])).tensors
    assert all(torch.allclose(found[name][0], wanted[name], atol=1e-6) for name in wanted)


@pytest.mark.parametrize("body", ["in place", "group norm"])
def test_nothing_is_left_behind(body):
    task, pool = built(BODIES[body]), pool_of()
    state = picture(task.model.state_dict())
    with own_randomness("batch_gradients"):
        list(batch_gradients(task, task.model.tensors(), pool, draw_examples()))
    assert picture(task.model.state_dict()) == state
    assert all(not module._forward_hooks for module in task.model.modules())
    assert all(parameter.grad is None and parameter.requires_grad for parameter in task.model.parameters())
    assert picture({"inputs": pool.inputs}) == picture({"inputs": pool_of().inputs})


def test_hooks_are_taken_off_when_the_network_fails():
    task = built(BODIES["linear"])
    with pytest.raises(RuntimeError, match="shapes"):
        list(
            batch_gradients(
                task, task.model.tensors(), Batch(torch.rand(4, 2, 5, 5), torch.zeros(4).long()), draw_examples(4)
            )
        )
    assert all(not module._forward_hooks for module in task.model.modules())
