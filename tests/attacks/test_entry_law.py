"""How far each entry of a message may be off, as the channel of a defence tells, or the message itself."""

import dataclasses
import math

import pytest
import torch

from leaktight.attacks.entry_law import entry_variances, visible_variances
from leaktight.attacks.replay import Replay
from leaktight.core.defence import Chain
from leaktight.core.message import Kind
from leaktight.core.threat import ThreatModel
from leaktight.defences import DPSGD, GaussianNoise, LaplaceNoise, LayerGuard, LocalDP, TopK

WEIGHT, HEAD = "body.1.weight", "head.weight"


def law(run):
    """Return the variances of the first message's entries, and the message."""
    view = ThreatModel().view(run)
    sent = view.exchanges()[0].sent
    replay = dataclasses.replace(Replay.of(view.task, sent), channel=run.defence.channel(view.task))
    return entry_variances(replay, sent.tensors), sent.tensors


@pytest.mark.parametrize(
    ("defence", "std"),
    [
        (GaussianNoise(std=0.02), 0.02),
        (LaplaceNoise(scale=0.02), 0.02 * math.sqrt(2)),
        (LocalDP(clip=0.5, multiplier=0.1), 0.05),
        (DPSGD(clip=0.5, multiplier=0.1), 0.05),
        (Chain(links=(GaussianNoise(std=0.03), GaussianNoise(std=0.04))), 0.05),
    ],
    ids=str,
)
def test_noise_has_its_variance_whatever_is_clipped(observe, defence, std):
    variances, _ = law(observe(victims=1, defence=defence))
    for each in variances.values():
        torch.testing.assert_close(each.sqrt(), torch.full_like(each, std), rtol=1e-4, atol=0)


def test_noise_of_a_step_is_that_of_the_step_in_an_update(observe):
    run = observe(victims=1, defence=GaussianNoise(std=0.02, each="step"), rate=0.1, shares=Kind.UPDATE)
    assert law(run)[0][WEIGHT].sqrt().mean().item() == pytest.approx(0.002, rel=1e-3)


def test_what_was_left_out_lies_within_the_smallest_that_came(observe):
    variances, sent = law(observe(victims=1, defence=TopK(share=0.3)))
    edge = min(tensor.abs()[tensor != 0].min().item() for tensor in sent.values())
    for name, tensor in sent.items():
        torch.testing.assert_close(
            variances[name][tensor == 0].sqrt().float(), torch.full_like(tensor[tensor == 0], edge / math.sqrt(3))
        )
        assert (variances[name][tensor != 0].sqrt() < 1e-3 * edge).all()


def test_only_guarded_layers_have_noise(observe):
    variances, _ = law(observe(victims=1, defence=LayerGuard(layers=("head",), guard=GaussianNoise(std=0.1))))
    assert variances[HEAD].min() > 0.009
    assert variances[WEIGHT].max() < 1e-10


def test_a_mask_shows_in_zeros_that_no_row_and_no_column_explains():
    gradient = torch.outer(torch.tensor([0.0, 1.0, -2.0]), torch.tensor([3.0, 0.0, 0.5, 1.0])).double()
    assert visible_variances(gradient) is None
    gradient[1, 2] = 0
    found = visible_variances(gradient)
    assert found is not None
    assert found[1, 2].sqrt().item() == pytest.approx(1.0 / math.sqrt(3))
    assert found[2, 0].sqrt().item() < 1e-5
