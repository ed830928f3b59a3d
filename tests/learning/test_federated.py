"""The federated scenario on a bundled data set: stages, observations, determinism."""

import dataclasses
from typing import Literal

import pytest
import torch

from leaktight.core.defence import Chain, Defence, Undefended
from leaktight.core.errors import InvalidValue
from leaktight.core.message import Kind
from leaktight.core.scenario import Observation
from leaktight.core.threat import ThreatModel
from leaktight.data import Digits
from leaktight.defences import DPSGD, GaussianNoise, Pruning
from leaktight.learning import FedAvg, Federated, FedSGD, standalone
from leaktight.models import MLP


class Darker(Defence):
    """Trains on half as bright images with twice the loss: it changes the task and the batch, not the message."""

    kind: Literal["test_darker"] = "test_darker"

    def on_task(self, task, local):
        return dataclasses.replace(task, loss=lambda outputs, labels: 2 * task.loss(outputs, labels))

    def on_batch(self, batch, local):
        return dataclasses.replace(batch, inputs=batch.inputs / 2)


def scenario(**settings) -> Federated:
    return Federated(**{"data": Digits(), "model": MLP(hidden=(32,)), "rounds": 20, **settings})


@pytest.fixture(scope="module")
def training():
    return scenario().train(Undefended(), seed=0)


def test_training_learns_and_keeps_the_stages(training):
    assert set(training.snapshots) == {"initial", "early", "end"}
    (accuracy,) = [reading for reading in training.utility if reading.name == "accuracy"]
    assert accuracy.value > 0.6
    weights = [training.snapshots[stage].parameters["head.weight"] for stage in ("initial", "early", "end")]
    assert not torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[1], weights[2])


def test_the_same_seed_trains_the_same_model(training):
    again = scenario().train(Undefended(), seed=0)
    other = scenario().train(Undefended(), seed=1)
    end = training.snapshots["end"].parameters
    assert all(torch.equal(end[name], again.snapshots["end"].parameters[name]) for name in end)
    assert not torch.equal(end["head.weight"], other.snapshots["end"].parameters["head.weight"])


def test_an_observation_has_as_many_messages_as_victims_from_the_stage_s_parameters(training):
    run = scenario().observe(training, Undefended(), Observation("end", batch_size=3, victims=6, seed=0))
    exchanges = ThreatModel().view(run).exchanges()
    assert len({exchange.sent.key for exchange in exchanges}) == 6
    assert all(exchange.sent.facts["examples"] == 3 for exchange in exchanges)
    assert torch.equal(exchanges[0].parameters["head.bias"], training.snapshots["end"].parameters["head.bias"])
    inputs = torch.cat([found.raw.inputs for found in run.truths.values()]).flatten(1)
    assert len(torch.unique(inputs, dim=0)) == 18


def test_secure_aggregation_shows_one_message_with_everybody_s_examples_behind_it():
    secure = scenario(rounds=1, participants=3, protocol=FedSGD(aggregation="secure"))
    run = secure.observe(secure.train(Undefended(), 0), Undefended(), Observation("initial", 2, 2, 0))
    exchanges = ThreatModel().view(run).exchanges()
    assert [exchange.sent.sender for exchange in exchanges] == ["sum", "sum"]
    assert all(len(run.truths[exchange.sent.key].raw) == 6 for exchange in exchanges)
    assert {message.sender for message in run.transcript} == {"server", "sum"}


def test_a_batch_that_no_participant_can_fill_is_refused(training):
    with pytest.raises(InvalidValue, match="what the smallest participant owns"):
        scenario().observe(training, Undefended(), Observation("end", 10_000, 1, 0))


def test_an_update_is_observed_with_all_its_local_steps():
    averaged = scenario(rounds=1, protocol=FedAvg(local_steps=3))
    run = averaged.observe(averaged.train(Undefended(), 0), Undefended(), Observation("end", 2, 1, 0))
    message = run.transcript[-1]
    assert message.kind is Kind.UPDATE
    assert len(run.truths[message.key].raw) == 6


def test_standalone_training_gives_each_participant_s_accuracy():
    alone = standalone(scenario(participants=3, rounds=15), seed=0)
    assert len(alone) == 3
    assert all(readings[0].value > 0.3 for readings in alone)


def test_without_rounds_the_model_stays_untrained():
    idle = scenario(rounds=0).train(Undefended(), seed=0)
    assert torch.equal(idle.snapshots["initial"].parameters["head.bias"], idle.snapshots["end"].parameters["head.bias"])


def observed(defence: Defence, training, **settings):
    return scenario(**settings).observe(training, defence, Observation("early", batch_size=3, victims=5, seed=0)).truths


def same(one, other) -> bool:
    return one.tensors.keys() == other.tensors.keys() and all(
        torch.equal(one.tensors[n], other.tensors[n]) for n in one.tensors
    )


DEFENCES = [GaussianNoise(std=0.1), Pruning(), DPSGD(), Darker(), Chain(links=(Darker(), GaussianNoise(std=0.1)))]


@pytest.mark.parametrize("defence", DEFENCES, ids=str)
@pytest.mark.parametrize("protocol", [FedSGD(), FedAvg(local_steps=3)], ids=str)
def test_plain_is_what_an_undefended_participant_sends_for_the_same_examples(training, defence, protocol):
    bare, defended = (observed(each, training, protocol=protocol) for each in (Undefended(), defence))
    assert bare.keys() == defended.keys()
    for key, found in defended.items():
        assert torch.equal(found.raw.inputs, bare[key].raw.inputs)
        assert torch.equal(found.raw.labels, bare[key].raw.labels)
        assert same(found.plain, bare[key].sent)
        assert (found.plain.key, found.plain.kind, found.plain.facts) == (key, found.sent.kind, bare[key].sent.facts)
        assert not same(found.sent, found.plain)


def test_an_undefended_message_is_its_own_plain_one(training):
    assert all(found.plain is found.clean for found in observed(Undefended(), training).values())


def test_the_twin_leaves_the_participant_as_it_is(training):
    """Noise, notes and memory are those of a participant that nobody compares with anything."""
    chosen = scenario()
    data = chosen.data.load()
    watched = chosen.observe(training, DPSGD(), Observation("initial", 3, 4, 0))
    alone = chosen.clients(DPSGD().on_agree(chosen.task(data, 0)), data, DPSGD(), 0, batch_size=3)
    for client, ask in zip(alone, watched.transcript[::2], strict=True):
        sent = client.respond(ask)
        assert same(sent, watched.truths[sent.key].sent)
        assert client.local.notes == watched.locals[client.name].notes


def test_owned_is_everything_a_participant_holds_and_no_copy(training):
    found = observed(GaussianNoise(), training)
    owned = {key[0]: ground_truth.owned for key, ground_truth in found.items()}
    assert len(owned) == 4
    assert sum(map(len, owned.values())) == len(Digits().load().train)
    assert found["client-0", 20].owned is found["client-0", 21].owned
    for ground_truth in found.values():
        distances = torch.cdist(ground_truth.raw.inputs.flatten(1), ground_truth.owned.inputs.flatten(1))
        assert distances.min(1).values.max() == 0


def test_of_a_secure_sum_plain_is_the_undefended_sum_and_owned_is_everybody_s():
    secure = scenario(rounds=1, participants=3, protocol=FedSGD(aggregation="secure"))
    trained = secure.train(Undefended(), 0)
    bare, noisy = (
        secure.observe(trained, each, Observation("initial", 2, 2, 0)).truths
        for each in (Undefended(), GaussianNoise(std=0.1))
    )
    for key, found in noisy.items():
        assert found.plain.key == key
        assert found.plain.facts == found.sent.facts
        assert same(found.plain, bare[key].sent)
        assert not same(found.plain, found.sent)
        assert len(found.owned) == len(Digits().load().train)
    first, second = noisy.values()
    assert first.owned is second.owned
