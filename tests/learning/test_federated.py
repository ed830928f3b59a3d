"""The federated scenario on a bundled data set: stages, observations, determinism."""

import pytest
import torch

from leaktight.core.defence import Undefended
from leaktight.core.errors import InvalidValue
from leaktight.core.message import Kind
from leaktight.core.scenario import Observation
from leaktight.core.threat import ThreatModel
from leaktight.data import Digits
from leaktight.learning import FedAvg, Federated, FedSGD, standalone
from leaktight.models import MLP


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
    inputs = torch.cat([found.raw.inputs for found in run.inside.values()]).flatten(1)
    assert len(torch.unique(inputs, dim=0)) == 18


def test_secure_aggregation_shows_one_message_with_everybody_s_examples_behind_it():
    secure = scenario(rounds=1, participants=3, protocol=FedSGD(aggregation="secure"))
    run = secure.observe(secure.train(Undefended(), 0), Undefended(), Observation("initial", 2, 2, 0))
    exchanges = ThreatModel().view(run).exchanges()
    assert [exchange.sent.sender for exchange in exchanges] == ["sum", "sum"]
    assert all(len(run.inside[exchange.sent.key].raw) == 6 for exchange in exchanges)
    assert {message.sender for message in run.transcript} == {"server", "sum"}


def test_a_batch_that_no_participant_can_fill_is_refused(training):
    with pytest.raises(InvalidValue, match="what the smallest participant owns"):
        scenario().observe(training, Undefended(), Observation("end", 10_000, 1, 0))


def test_an_update_is_observed_with_all_its_local_steps():
    averaged = scenario(rounds=1, protocol=FedAvg(local_steps=3))
    run = averaged.observe(averaged.train(Undefended(), 0), Undefended(), Observation("end", 2, 1, 0))
    message = run.transcript[-1]
    assert message.kind is Kind.UPDATE
    assert len(run.inside[message.key].raw) == 6


def test_standalone_training_gives_each_participant_s_accuracy():
    alone = standalone(scenario(participants=3, rounds=15), seed=0)
    assert len(alone) == 3
    assert all(readings[0].value > 0.3 for readings in alone)


def test_without_rounds_the_model_stays_untrained():
    idle = scenario(rounds=0).train(Undefended(), seed=0)
    assert torch.equal(idle.snapshots["initial"].parameters["head.bias"], idle.snapshots["end"].parameters["head.bias"])
