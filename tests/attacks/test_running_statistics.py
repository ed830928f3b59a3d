"""Running statistics: means and variances of a batch come back, and searches use them."""

import dataclasses

import pytest
import torch
from torch import nn

from leaktight.attacks import RunningStatistics, Strongest, preset
from leaktight.attacks.replay import MASK, Replay
from leaktight.attacks.shadow import moments, shadow_messages
from leaktight.core.attack import Ensemble, GuessedStatistics
from leaktight.core.errors import LeaktightError, Refusal
from leaktight.core.local import Local
from leaktight.core.message import Kind, Message
from leaktight.core.probe import Attempt
from leaktight.core.random import stream
from leaktight.core.run import Run
from leaktight.core.task import Batch, Model
from leaktight.core.threat import Knows, ThreatModel
from leaktight.data import Digits
from leaktight.defences import GaussianNoise, Withhold
from leaktight.learning import Sgd, classification
from leaktight.learning.aggregate import secure_sum
from leaktight.learning.client import Client
from leaktight.learning.client_truth import join_truth
from leaktight.metrics import PSNR, StatisticsError, statistics_error
from leaktight.models import wrap
from leaktight.testing import check_attack, normed_task, toy_batch, toy_run

SHAPE = (3, 8, 8)
OFF = GaussianNoise(std=0.0)
KNOWS = ThreatModel(knows=frozenset({Knows.DEFENCE, Knows.LOCAL_STEPS}))


def resnet():
    """A convolution with batch norm, a residual block, and a head."""

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.bn = nn.Conv2d(6, 6, 3, padding=1, bias=False), nn.BatchNorm2d(6)

        def forward(self, inputs):
            return torch.relu(inputs + self.bn(self.conv(inputs)))

    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU(), Block(), nn.Flatten(), nn.Linear(384, 4)
    )


def sent_by(module, data, **settings):
    """A run of one client with this network, and what it was sent."""
    body, head = wrap(module, SHAPE, 4)
    task = classification(Model(body, head), SHAPE, 4)
    settings = {"defence": OFF, "batch_size": len(data), **settings}
    client = Client("client-0", task, data, local=Local("client-0", seed=0), **settings)
    ask = Message(Kind.PARAMETERS, "server", "client-0", 0, task.public_state())
    truth = client.answer(ask)
    return Run((ask, truth.sent), task, client.defence, {truth.sent.key: truth}), truth


def test_means_and_variances_of_a_batch_come_back_to_a_thousandth():
    module, data = resnet(), toy_batch(8, shape=SHAPE)
    module(torch.rand(16, *SHAPE))  # running statistics that are not those of a new network
    run, truth = sent_by(module, data)
    guess = RunningStatistics()(KNOWS.view(run), stream(0))
    seen = {}
    for name in ("1", "3.bn"):
        layer = module.get_submodule(name)
        layer.register_forward_pre_hook(lambda _, given, name=name: seen.update({name: given[0].detach()}))
    module(truth.used.inputs)
    for name, inputs in seen.items():
        rows = inputs.transpose(0, 1).flatten(1)
        for part, wanted in (("running_mean", rows.mean(1)), ("running_var", rows.var(1))):
            found = guess.values[0][f"body.{name}.{part}"]
            assert (found - wanted).norm() / wanted.norm() < 1e-3


def test_of_several_steps_the_weighted_mean_comes_back():
    settings = {"batch_size": 2, "local_steps": 4, "shares": Kind.UPDATE, "optimiser": Sgd(learning_rate=0.01)}
    run, truth = sent_by(resnet(), toy_batch(8, shape=SHAPE), **settings)
    [values] = RunningStatistics()(KNOWS.view(run), stream(0)).values
    assert statistics_error(values, truth.statistics) < 1e-3
    with pytest.raises(Refusal, match="Add `local_steps` to `knows`"):
        RunningStatistics()(ThreatModel(knows=frozenset()).view(run), stream(0))


def test_noise_on_the_buffers_is_noise_in_the_answer():
    errors = []
    for std in (0.0, 0.01, 0.1):
        run, truth = sent_by(resnet(), toy_batch(8, shape=SHAPE), defence=GaussianNoise(std=std))
        [values] = RunningStatistics()(KNOWS.view(run), stream(0)).values
        errors.append(statistics_error(values, truth.statistics))
    assert errors == sorted(errors)
    assert errors[0] < 1e-3 < errors[1]


def test_where_nothing_is_sent_along_it_refuses():
    run, _ = sent_by(resnet(), toy_batch(4, shape=SHAPE), defence=Withhold(parts=("running_mean", "running_var")))
    for each in (run, toy_run()):
        with pytest.raises(Refusal, match="batch norm is in training mode and sends them along"):
            RunningStatistics()(KNOWS.view(each), stream(0))


def test_it_keeps_the_promises_of_attacks():
    check_attack(RunningStatistics())


def test_a_guess_of_another_form_is_an_error():
    one, other = {"a": torch.ones(2)}, {"a": torch.ones(3)}
    with pytest.raises(LeaktightError, match="must guess finite statistics"):
        GuessedStatistics((("client-0", 0),), (one,), (other,)).check("mine", (1,))
    with pytest.raises(LeaktightError, match="must guess finite statistics"):
        GuessedStatistics((("client-0", 0),), ({"a": torch.tensor([torch.nan])},), ({"a": torch.ones(1)},)).check(
            "m", ()
        )


def test_the_metric_compares_with_what_was_known_before():
    run = toy_run(rounds=12, batch_size=3, task=normed_task())
    trial = Attempt(attack=RunningStatistics(), metrics=(StatisticsError(), PSNR()))
    [reading] = trial.read(run, stream(0)).readings
    assert reading.name == "statistics_error"
    assert reading.value < 1e-3
    assert reading.chance > 0.1
    assert reading.beats_chance()
    assert reading.n == 12


def test_the_strongest_attacker_reads_them_wherever_they_are_sent():
    quick = {"posterior": preset("posterior").model_copy(update={"iterations": 2, "restarts": 1, "phases": 1})}
    run = toy_run(rounds=2, batch_size=2, task=normed_task())
    guess = Strongest(members=quick)(KNOWS.view(run), stream(0))
    assert isinstance(guess, Ensemble)
    assert isinstance(guess.members["running_statistics"], GuessedStatistics)
    assert Strongest(members=quick).member("running_statistics") == RunningStatistics()
    plain = Strongest(members=quick)(KNOWS.view(toy_run(rounds=1)), stream(0))
    assert "running_statistics" not in plain.members


def posterior(**settings):
    return preset("posterior").model_copy(update={"restarts": 2, "phases": 1, "iterations": 200, **settings})


def test_searches_by_likelihood_match_what_is_sent_along():
    run = toy_run(rounds=1, batch_size=2, task=normed_task())
    view = KNOWS.view(run)
    [(_, victims)] = posterior().cases(view, view.exchanges(), stream(0))
    assert "body.1.running_mean" in victims.sightings[0].wanted
    [(_, others)] = preset("geiping2020").cases(view, view.exchanges(), stream(0))
    assert others.sightings[0].wanted.keys() == run.public.public_parameters().keys()


@pytest.mark.parametrize("dropout", [0.0, 0.4])
def test_a_replay_of_the_truth_is_the_message(dropout):
    run = toy_run(rounds=1, batch_size=3, task=normed_task(dropout=dropout))
    [truth] = run.truths.values()
    [exchange] = KNOWS.view(run).exchanges()
    replay = Replay.of(run.public, exchange.sent)
    targets = nn.functional.one_hot(truth.raw.labels, run.public.classes).float()
    masks = {MASK + use: torch.where(mask > 0, 30.0, -30.0) for use, mask in truth.masks.items()}
    belief = replay(exchange.parameters, truth.raw.inputs, targets, masks)
    assert belief.means.keys() == exchange.sent.tensors.keys()
    for name, mean in belief.means.items():
        torch.testing.assert_close(mean, exchange.sent.tensors[name], rtol=1e-4, atol=1e-6)


def digits(count):
    """Digits of 8 x 8 pixels, with labels of the toys."""
    owned = Digits(size=8).load().train
    return Batch(owned.inputs[:count], owned.labels[:count] % 4)


def psnr(attack, run):
    readings = Attempt(attack=attack, threat=KNOWS, metrics=(PSNR(),)).read(run, stream(0)).readings
    return next(reading.value for reading in readings if reading.against == "raw")


def test_a_search_that_knows_the_mode_finds_the_examples():
    run = toy_run(rounds=2, batch_size=1, task=normed_task(shape=(1, 8, 8)), data=digits(2))
    assert psnr(posterior(), run) > 60


def test_a_search_for_the_masks_of_dropout_finds_more_than_one_that_takes_the_average():
    run = toy_run(rounds=2, batch_size=1, task=normed_task(shape=(1, 8, 8), dropout=0.3), data=digits(2))
    average = posterior(distance="l2", stop=0.0)
    assert psnr(posterior(), run) > max(35, psnr(average, run) + 10)


def test_noise_on_buffers_is_in_their_law():
    run = toy_run(GaussianNoise(std=0.1), rounds=1, batch_size=2, task=normed_task())
    view = KNOWS.view(run)
    [(_, victims)] = posterior().cases(view, view.exchanges(), stream(0))
    replay, [truth] = victims.replay, run.truths.values()
    targets = nn.functional.one_hot(truth.raw.labels, 4).float()
    belief = replay(view.exchanges()[0].parameters, truth.raw.inputs, targets)
    assert belief.noise_of("body.1.running_var").variance == pytest.approx(0.01)


def test_messages_of_shadow_participants_have_them_too():
    run = toy_run(rounds=1, batch_size=2, task=normed_task(dropout=0.2))
    view = KNOWS.view(run)
    [moment] = moments(view, view.exchanges())
    [found] = shadow_messages(view.task, moment, toy_batch(2), torch.tensor([[0, 1]]), stream(0))
    assert found.keys() == view.exchanges()[0].sent.tensors.keys()


def test_batches_of_a_sum_are_averaged():
    first, second = (sent_by(resnet(), toy_batch(4, seed, shape=SHAPE)) for seed in range(2))
    total = secure_sum([first[1].sent, second[1].sent])
    truth = join_truth([first[1], second[1]], total, None)
    ask = dataclasses.replace(first[0].transcript[0], receiver="sum")
    run = Run((ask, total), first[0].public, OFF, {total.key: truth})
    [values] = RunningStatistics()(KNOWS.view(run), stream(0)).values
    assert statistics_error(values, truth.statistics) < 1e-3
