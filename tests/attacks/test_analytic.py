"""The analytic attack is exact where theory says so, uses what it knows of a defence, and certifies only what is right."""

import dataclasses

import pytest
import torch
from torch import nn

from leaktight.attacks import Analytic
from leaktight.core.errors import Refusal
from leaktight.core.message import Kind
from leaktight.core.probe import Attempt
from leaktight.core.random import stream
from leaktight.core.task import Model
from leaktight.core.threat import Knows, ThreatModel
from leaktight.defences import (
    ClassKeys,
    GaussianNoise,
    LayerGuard,
    LocalDP,
    Polarization,
    Pruning,
    TopK,
    Transformation,
)
from leaktight.metrics import PSNR, ExactShare, FalseAnswers

PLAIN = ThreatModel()
KNOWS = ThreatModel(knows=frozenset({Knows.DEFENCE, Knows.LOCAL_STEPS}))


def errors(guess, run):
    """Return the largest error of each message's answers, each against its nearest example."""
    pairs = zip(guess.inputs, (run.truths[key].raw.inputs for key in guess.keys), strict=True)
    return torch.stack(
        [torch.cdist(one.flatten(1), truth.flatten(1), p=torch.inf).amin(1).max() for one, truth in pairs]
    )


def psnr(run, threat=KNOWS):
    return Attempt(attack=Analytic(), threat=threat, metrics=(PSNR(),)).read(run, stream(0)).readings[0].value


@pytest.mark.parametrize("standardised", [False, True])
@pytest.mark.parametrize(
    "defence", [None, Polarization(alpha2=100.0), ClassKeys()], ids=["plain", "polarization", "class keys"]
)
def test_one_example_is_exact_under_any_loss(observe, standardise, standardised, defence):
    run = observe(victims=5, shape=(3, 5, 5), normalise=standardise if standardised else None, defence=defence)
    for threat in (PLAIN, KNOWS):
        guess = Analytic()(threat.view(run), stream(0))
        assert errors(guess, run).max() < 1e-4
        # Under a private loss that nobody told it of, the slopes are not the network's: it reads, and proves nothing.
        sure = threat is KNOWS or defence is None
        assert all(bool(one.all()) == sure for one in guess.certified)


@pytest.mark.parametrize(
    "change",
    [
        lambda weight, bias: (weight * torch.where(torch.arange(weight.shape[1]) % 2 == 0, 1.0, -1.0), bias),
        lambda weight, bias: (weight, bias * (1 + 0.1 * torch.sin(torch.arange(len(bias)) * 1.7))),
    ],
    ids=["signs", "bias alone"],
)
def test_what_was_tampered_with_is_not_certified(observe, change):
    run = observe(victims=3, shape=(3, 5, 5))
    transcript = []
    for message in run.transcript:
        if message.kind is Kind.GRADIENT:
            weight, bias = (
                next(name for name in message.tensors if name.endswith(part)) for part in ("weight", "bias")
            )
            changed = dict(zip((weight, bias), change(message.tensors[weight], message.tensors[bias]), strict=True))
            message = dataclasses.replace(message, tensors={**message.tensors, **changed})
        transcript.append(message)
    for threat in (PLAIN, KNOWS):
        guess = Analytic()(threat.view(dataclasses.replace(run, transcript=tuple(transcript))), stream(0))
        assert not any(one.any() for one in guess.certified)


@pytest.mark.parametrize("shares", [Kind.GRADIENT, Kind.UPDATE])
def test_its_label_comes_along(observe, shares):
    run = observe(victims=6, shares=shares)
    guess = Analytic()(PLAIN.view(run), stream(0))
    assert [int(one) for one in guess.labels] == [int(ground_truth.raw.labels) for ground_truth in run.truths.values()]


@pytest.mark.parametrize("shares", [Kind.GRADIENT, Kind.UPDATE])
@pytest.mark.parametrize("defence", [None, Polarization(alpha2=100.0), LocalDP(clip=0.01, multiplier=0.0)], ids=str)
def test_batches_are_exact_behind_a_relu(relu_run, defence, shares):
    run = relu_run(batch=5, defence=defence, shares=shares)
    readings = Attempt(attack=Analytic(), metrics=(ExactShare(), FalseAnswers())).read(run, stream(0)).readings
    assert [(reading.name, reading.value) for reading in readings] == [
        ("exact_share", 1.0),
        ("exact_share", 1.0),
        ("false_answers", 0.0),
    ]


def test_an_update_whose_rate_nobody_knows_is_read_all_the_same(relu_run):
    run = relu_run(batch=3, shares=Kind.UPDATE)
    guess = Analytic()(ThreatModel(knows=frozenset()).view(run), stream(0))
    assert errors(guess, run).max() < 1e-3


def test_batches_behind_another_activation_are_answered_but_not_certified(observe):
    guess = Analytic()(PLAIN.view(observe(victims=1, batch=4)), stream(0))
    assert guess.inputs[0].shape == (4, 1, 6, 6)
    assert not guess.certified[0].any()


def test_all_rows_together_beat_noise(observe):
    """One row of 24 has at best a few times its share of the slopes."""
    run = observe(victims=20, defence=GaussianNoise(std=0.003))
    rows = []
    for exchange in PLAIN.view(run).exchanges():
        weight, bias = exchange.sent.tensors["body.1.weight"], exchange.sent.tensors["body.1.bias"]
        best = bias.abs().argmax()
        inputs = (weight[best] / bias[best]).view(1, 6, 6).clamp(0, 1)
        rows.append(PSNR().measure(inputs[None], run.truths[exchange.sent.key].raw.inputs)[0])
    assert psnr(run) > torch.stack(rows).mean() + 5


def test_noise_on_some_entries_counts_by_its_law(observe):
    noisy = LayerGuard(layers=("body.1",), guard=GaussianNoise(std=0.02))
    runs = [observe(victims=10, defence=each) for each in (noisy, TopK(share=0.2, noise=0.001), Pruning(rate=0.8))]
    for run in runs:
        assert psnr(run, KNOWS) >= psnr(run, PLAIN) - 0.1


@pytest.mark.parametrize("defence", [TopK(share=0.5), Pruning(rate=0.5)], ids=str)
def test_only_entries_that_came_count(observe, defence):
    """Most pixels of half of the entries are exact; those that never came stay at what bounds them."""
    run = observe(victims=6, defence=defence)
    guess = Analytic()(KNOWS.view(run), stream(0))
    for key, inputs in zip(guess.keys, guess.inputs, strict=True):
        came = (run.truths[key].sent.tensors["body.1.weight"] != 0).any(0).view(1, 6, 6)
        assert (inputs - run.truths[key].raw.inputs)[0][came].abs().max() < 1e-3
    assert psnr(run, PLAIN) > 30


def test_without_a_bias_the_range_of_pixels_gives_the_scale(observe):
    images = torch.rand(3, 1, 6, 6, generator=torch.Generator().manual_seed(0))
    images.flatten(1)[:, 0] = 1.0
    run = observe(victims=3, images=images)
    bare = [
        dataclasses.replace(message, tensors={n: t for n, t in message.tensors.items() if n != "body.1.bias"})
        if message.kind is Kind.GRADIENT
        else message
        for message in run.transcript
    ]
    guess = Analytic()(PLAIN.view(dataclasses.replace(run, transcript=tuple(bare))), stream(0))
    assert errors(guess, run).max() < 1e-4
    assert not any(one.any() for one in guess.certified)


@pytest.mark.parametrize("std", [1e-5, 1e-4, 1e-3])
@pytest.mark.parametrize("batch", [1, 4])
def test_what_is_certified_is_right(relu_run, std, batch):
    run = relu_run(batch=batch, victims=4, defence=GaussianNoise(std=std))
    for threat in (PLAIN, KNOWS):
        found = (
            Attempt(attack=Analytic(draws=512), threat=threat, metrics=(FalseAnswers(),)).read(run, stream(0)).readings
        )
        assert found[0].value == 0


def test_a_vanished_gradient_gives_a_finite_answer(observe):
    for batch in (1, 3):
        run = observe(victims=1, batch=batch)
        for change in (torch.zeros_like, lambda tensor: torch.full_like(tensor, torch.nan)):
            silent = dataclasses.replace(run, transcript=(run.transcript[0], run.transcript[1].map(change)))
            guess = Analytic()(PLAIN.view(silent), stream(0))
            assert guess.inputs[0].isfinite().all()
            assert not guess.certified[0].any()


def test_a_convolution_first_is_refused(observe):
    run = observe(victims=1)
    model = Model(nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(32, 4)), nn.Linear(4, 4))
    with pytest.raises(Refusal, match="begins with a linear layer"):
        Analytic()(PLAIN.view(dataclasses.replace(run, public=dataclasses.replace(run.public, model=model))), stream(0))


def test_it_adapts_to_what_it_uses():
    assert Analytic().adapts_to(GaussianNoise())
    assert Analytic().adapts_to(Polarization())
    assert not Analytic().adapts_to(TopK(residual=True))
    assert not Analytic().adapts_to(Transformation(policy="3-1-7"))
    assert not Analytic().needs
