"""Labels follow from the public head where the examples are known, each with its own."""

import pytest
import torch

from leaktight.attacks import Analytic
from leaktight.attacks.head_labels import labels_by_head
from leaktight.attacks.linear_layer import augment
from leaktight.core.message import Kind
from leaktight.core.random import stream
from leaktight.core.threat import ThreatModel
from leaktight.defences import Polarization


@pytest.mark.parametrize("factor", [1.0, 0.01])
def test_each_example_gets_its_own_label(rectified, factor):
    layer, batch, _ = rectified(6)
    head = layer.task.model.head
    loss = layer.task.loss(layer.task.model(batch.inputs), batch.labels).mean()
    sent = dict(zip(("head.weight", "head.bias"), torch.autograd.grad(factor * loss, tuple(head.parameters())), strict=True))
    seen = augment(layer.task.model.normalise(batch.inputs).flatten(1), torch.ones(6))
    order = torch.randperm(6, generator=torch.Generator().manual_seed(0))
    assert torch.equal(labels_by_head(layer, seen[order], sent), batch.labels[order])
    strangers = torch.cat([seen[:3], seen[:3] + torch.randn(3, 37, generator=torch.Generator().manual_seed(1))])
    assert (labels_by_head(layer, strangers, sent)[3:] == -1).any()
    assert (labels_by_head(layer, seen, {"head.weight": sent["head.weight"]}) == -1).all()


@pytest.mark.parametrize("shares", [Kind.GRADIENT, Kind.UPDATE])
def test_a_private_loss_does_not_hide_which_label_is_whose(relu_run, shares):
    run = relu_run(batch=4, defence=Polarization(alpha2=100.0), shares=shares)
    guess = Analytic()(ThreatModel().view(run), stream(0))
    for inputs, labels, certified, ground_truth in zip(
        guess.inputs, guess.labels, guess.certified, run.truths.values(), strict=True
    ):
        assert certified.all()
        nearest = torch.cdist(inputs.flatten(1), ground_truth.raw.inputs.flatten(1)).argmin(1)
        assert torch.equal(labels, ground_truth.raw.labels[nearest])
