"""Labels read off the last layer: exact where theory says so."""

import dataclasses

import pytest
import torch
from torch import nn

from leaktight.attacks.label import read_labels
from leaktight.attacks.local_steps import LocalSteps
from leaktight.attacks.replay import Replay
from leaktight.core.errors import Refusal
from leaktight.core.random import stream
from leaktight.core.task import Model
from leaktight.core.threat import ThreatModel
from leaktight.learning.optimiser import Adam, Sgd


def read(run):
    view = ThreatModel().view(run)
    for exchange in view.exchanges():
        found = read_labels(Replay.of(view.task, exchange.sent), exchange.parameters, exchange.sent.tensors, stream(0))
        yield found, run.truths[exchange.sent.key].used.labels.sort().values


@pytest.mark.parametrize("bias", [True, False])
def test_one_label_is_read_exactly(observe, bias):
    for found, truth in read(observe(victims=12, bias=bias)):
        assert torch.equal(found, truth)


def test_repeated_labels_are_counted_also_beyond_the_number_of_classes(observe):
    right = [
        len(set(found.tolist()) & set(truth.tolist())) / len(set(truth.tolist()))
        for found, truth in read(observe(victims=6, batch=3))
    ]
    assert sum(right) / len(right) > 0.9
    for found, truth in read(observe(victims=2, batch=12, labels=[0] * 7 + [1] * 3 + [3] * 2)):
        assert len(found) == 12
        assert (found.bincount(minlength=4) - truth.bincount(minlength=4)).abs().sum() <= 2


def test_labels_are_read_off_an_update(observe):
    for found, truth in read(observe(victims=4, batch=2, steps=2, rate=0.01)):
        assert (found.sort().values == truth).float().mean() >= 0.5


@pytest.mark.parametrize("optimiser", [Sgd(learning_rate=0.5), Adam(learning_rate=0.01)], ids=str)
def test_labels_behind_steps_come_in_the_order_of_the_steps(observe, optimiser):
    """Later steps start from where earlier ones went, which tells most orders; a guess by counts alone has half of these right."""
    right = []
    for labels in ([2, 2, 0], [0, 1, 2], [1, 3, 1]):
        run = observe(victims=3, steps=3, labels=labels, optimiser=optimiser)
        view = ThreatModel().view(run)
        for exchange in view.exchanges():
            found = read_labels(Replay.of(view.task, exchange.sent), exchange.parameters, exchange.sent.tensors, stream(0))
            right.append((found == run.truths[exchange.sent.key].used.labels).float().mean().item())
    assert sum(right) / len(right) > 0.8


@pytest.mark.parametrize("momentum", [0.0, 0.5, 0.9])
def test_steps_with_momentum_go_as_far_as_torch_takes_them(momentum):
    leaf = torch.zeros(1, requires_grad=True)
    optimiser = Sgd(learning_rate=1.0, momentum=momentum).over([leaf])
    for steps in range(1, 6):
        leaf.grad = torch.ones(1)
        optimiser.step()
        assert LocalSteps(steps, momentum=momentum).moved == pytest.approx(-leaf.item())


def test_momentum_changes_no_count_where_steps_are_alike(observe):
    """Three in four examples are of one class; read as plain steps, an update with momentum 0.9 seems to hold almost no other."""
    settings = {"victims": 3, "batch": 8, "steps": 4, "labels": ([0] * 6 + [2] * 2) * 4}
    runs = [observe(optimiser=Sgd(learning_rate=1e-3, momentum=momentum), **settings) for momentum in (0.0, 0.9)]
    plain, moved = ([found.bincount(minlength=4) for found, _ in read(run)] for run in runs)
    for one, other in zip(plain, moved, strict=True):
        assert (one - other).abs().sum() <= 4
        assert (other - torch.tensor([24, 0, 8, 0])).abs().sum() <= 4


def test_a_head_that_is_not_linear_is_refused(observe):
    run = observe(victims=1)
    public = dataclasses.replace(run.public, model=Model(run.public.model.body, nn.Sequential(run.public.model.head)))
    with pytest.raises(Refusal, match="linear head"):
        list(read(dataclasses.replace(run, public=public)))
