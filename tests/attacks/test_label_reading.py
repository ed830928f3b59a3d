"""Labels read off the last layer: exact where theory says so."""

import dataclasses

import pytest
import torch
from torch import nn

from leaktight.attacks import Analytic, GradientMatching, LabelReading
from leaktight.attacks.label_reading import labels_by_head, read_labels
from leaktight.attacks.linear_layer import augment
from leaktight.attacks.local_steps import LocalSteps
from leaktight.attacks.replay import Replay
from leaktight.core.attack import GuessedLabels
from leaktight.core.defence import Chain
from leaktight.core.errors import Refusal
from leaktight.core.message import Kind
from leaktight.core.probe import Attempt
from leaktight.core.random import stream
from leaktight.core.task import Model
from leaktight.core.threat import Knows, ThreatModel
from leaktight.defences import Polarization, TopK
from leaktight.learning.optimiser import Adam, Sgd
from leaktight.metrics import PSNR, LabelDistance, standard
from leaktight.testing.attacks import check_attack


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
            found = read_labels(
                Replay.of(view.task, exchange.sent), exchange.parameters, exchange.sent.tensors, stream(0)
            )
            right.append((found == run.truths[exchange.sent.key].used.labels).float().mean().item())
    assert sum(right) / len(right) > 0.8


@pytest.mark.parametrize("momentum", [0.0, 0.5, 0.9])
def test_steps_with_momentum_go_as_far_as_torch_takes_them(momentum):
    leaf = torch.zeros(1, requires_grad=True)
    optimiser = Sgd(learning_rate=1.0, momentum=momentum).over([leaf])
    for steps in range(1, 6):
        leaf.grad = torch.ones(1)
        optimiser.step()
        assert LocalSteps(steps, momentum=momentum).plain_steps == pytest.approx(-leaf.item())


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


DEFENCES = [None, Polarization(alpha2=5.0), Chain(links=(Polarization(alpha2=0.5, alpha1=3.0), TopK(share=0.9)))]

KNOWS_STEPS = ThreatModel(knows=frozenset({Knows.LOCAL_STEPS}))


def attempt(run):
    return Attempt(attack=LabelReading(), metrics=standard()).read(run, stream(0))


def test_it_keeps_the_promises_of_an_attack():
    check_attack(LabelReading())


@pytest.mark.parametrize("defence", DEFENCES, ids=str)
def test_one_label_is_read_exactly_under_any_private_head(observe, defence):
    run = observe(victims=12, defence=defence)
    guess = LabelReading()(ThreatModel().view(run), stream(0))
    assert isinstance(guess, GuessedLabels)
    for key, labels in zip(guess.keys, guess.labels, strict=True):
        assert torch.equal(labels, run.truths[key].used.labels)


def test_a_private_head_changes_no_count(observe):
    plain, private = (
        LabelReading()(ThreatModel().view(observe(victims=6, batch=4, defence=defence)), stream(0)).labels
        for defence in (None, Polarization(alpha2=5.0))
    )
    assert all(torch.equal(one, other) for one, other in zip(plain, private, strict=True))


def test_a_guess_of_labels_is_graded_by_labels_alone(observe):
    finding = attempt(observe(victims=4, defence=Polarization(alpha2=0.5)))
    graded = {reading.name: reading.value for reading in finding.readings if reading.leaks is not None}
    assert graded["label_distance"] == 0.0
    assert not {"psnr", "ssim", "mse", "tracing_distance"} & set(graded)
    assert not PSNR().grade(finding.guess, finding.truth, stream(0))


def test_it_says_the_same_as_matching_that_reads_labels(observe):
    view = ThreatModel().view(observe(victims=3, batch=2))
    matched = GradientMatching(iterations=1)(view, stream(0))
    read = LabelReading()(view, stream(0))
    assert matched.keys == read.keys
    assert all(torch.equal(one, other) for one, other in zip(matched.labels, read.labels, strict=True))


def test_updates_of_several_steps_are_read(observe):
    run = observe(victims=4, batch=1, steps=2, rate=0.01, labels=[1, 3], defence=Polarization())
    guess = LabelReading()(ThreatModel().view(run), stream(0))
    truth = [run.truths[key] for key in guess.keys]
    assert LabelDistance().grade(guess, truth, stream(0))[0].value <= 0.25


@pytest.mark.parametrize(("examples", "steps"), [(9, 4), (100, 6), (600, 5)])
def test_updates_of_any_number_of_examples_are_read(observe, examples, steps):
    """As from a loader whose last batch is smaller; here the facts of a message say so."""
    run = observe(victims=1, batch=2, steps=2)
    ask, sent = run.transcript
    changed = dataclasses.replace(sent, facts={**sent.facts, "examples": float(examples), "local_steps": float(steps)})
    view = KNOWS_STEPS.view(dataclasses.replace(run, transcript=(ask, changed)))
    [labels] = LabelReading()(view, stream(0)).labels
    assert labels.shape == (examples,)
    assert bool(((labels >= 0) & (labels < 4)).all())


def test_nothing_to_read_is_refused(observe):
    run = observe(victims=1)
    with pytest.raises(Refusal, match="Label reading needs a shared gradient"):
        LabelReading()(ThreatModel().view(dataclasses.replace(run, transcript=run.transcript[:1])), stream(0))


@pytest.mark.parametrize("factor", [1.0, 0.01])
def test_each_example_gets_its_own_label(rectified, factor):
    layer, batch, _ = rectified(6)
    head = layer.task.model.head
    loss = layer.task.loss(layer.task.model(batch.inputs), batch.labels).mean()
    sent = dict(
        zip(("head.weight", "head.bias"), torch.autograd.grad(factor * loss, tuple(head.parameters())), strict=True)
    )
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
    for inputs, labels, certified, inside in zip(
        guess.inputs, guess.labels, guess.certified, run.truths.values(), strict=True
    ):
        assert certified.all()
        nearest = torch.cdist(inputs.flatten(1), inside.raw.inputs.flatten(1)).argmin(1)
        assert torch.equal(labels, inside.raw.labels[nearest])
