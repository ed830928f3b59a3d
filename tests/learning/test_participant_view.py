"""What a participant can tell of the others from the parameters of two rounds."""

import pytest
import torch

from leaktight.core.defence import Undefended
from leaktight.core.errors import InvalidValue, LeaktightError
from leaktight.core.message import Kind
from leaktight.core.run import all_but
from leaktight.core.scenario import Observation
from leaktight.core.threat import Knows, ThreatModel
from leaktight.data import Digits
from leaktight.defences import GaussianNoise
from leaktight.learning import FedAvg, Federated, FedSGD, Sgd
from leaktight.models import MLP

SEEN = Observation("training", batch_size=4, victims=12, seed=0)


def observed(protocol, defence=None, participants=3, observation=SEEN, **changes):
    settings = {"data": Digits(), "model": MLP(hidden=(8,)), "rounds": 8, "moments": 2, **changes}
    scenario = Federated(participants=participants, protocol=protocol, **settings)
    defence = defence or Undefended()
    return scenario.observe(scenario.train(defence, 0), defence, observation)


@pytest.mark.parametrize("protocol", [FedSGD(), FedAvg(local_steps=2)], ids=str)
@pytest.mark.parametrize("defence", [Undefended(), GaussianNoise(std=0.01)], ids=str)
def test_the_mean_of_all_others_is_told(protocol, defence):
    run = observed(protocol, defence)
    exchanges = ThreatModel(seat="client-1").view(run).exchanges()
    assert len(exchanges) == 4  # 12 messages are 4 rounds of 3
    for exchange in exchanges:
        assert exchange.sent.sender == all_but("client-1")
        truth = run.truth(exchange.sent.key)
        for name, tensor in exchange.sent.tensors.items():
            sent = [run.truths[other, exchange.sent.round].sent.tensors[name] for other in ("client-0", "client-2")]
            assert torch.allclose(tensor, torch.stack(sent).mean(0), atol=1e-5)
            assert torch.allclose(tensor, truth.sent.tensors[name], atol=1e-5)
        assert len(truth.raw) == exchange.sent.facts["examples"] == 2 * 4 * protocol.local_steps


def test_the_server_sees_every_message_of_whole_rounds():
    run = observed(FedSGD())
    exchanges = ThreatModel().view(run).exchanges()
    assert sorted(exchange.sent.key for exchange in exchanges) == [
        (f"client-{n}", r) for n in range(3) for r in (0, 1, 4, 5)
    ]
    parameters = {exchange.sent.round: exchange.parameters for exchange in exchanges}
    assert not torch.equal(parameters[0]["head.weight"], parameters[1]["head.weight"])


@pytest.mark.parametrize(
    ("protocol", "knows"),
    [
        (FedSGD(optimiser=Sgd(momentum=0.9)), frozenset({Knows.LOCAL_STEPS})),
        (FedSGD(), frozenset()),
        (FedSGD(aggregation="weighted"), frozenset({Knows.LOCAL_STEPS})),
    ],
    ids=["momentum", "rate", "weighted"],
)
def test_who_does_not_know_the_step_can_tell_nothing(protocol, knows):
    assert ThreatModel(seat="client-1", knows=knows).view(observed(protocol)).exchanges() == ()


def test_messages_at_one_moment_tell_a_participant_nothing():
    run = observed(FedSGD(), observation=Observation("end", batch_size=4, victims=6, seed=0))
    assert ThreatModel(seat="client-1").view(run).exchanges() == ()


def test_under_secure_aggregation_the_sum_of_each_round_is_seen():
    run = observed(FedSGD(aggregation="secure"), observation=Observation("training", 4, 4, 0))
    exchanges = ThreatModel().view(run).exchanges()
    assert [exchange.sent.key for exchange in exchanges] == [("sum", r) for r in (0, 1, 4, 5)]
    assert all(exchange.sent.kind is Kind.GRADIENT for exchange in exchanges)


def test_without_moments_the_training_cannot_be_observed():
    with pytest.raises(InvalidValue, match="Set `moments` of the scenario"):
        observed(FedSGD(), moments=0)
    assert "training" not in Federated(data=Digits(), model=MLP()).stages
    with pytest.raises(InvalidValue, match="at most 8 rounds"):
        observed(FedSGD(), observation=Observation("training", 4, 100, 0))


@pytest.mark.parametrize("moments", [2, 8])
def test_where_moments_touch_each_round_is_told_by_its_own_parameters(moments):
    """The last parameters of a moment and the first of the next have one number, and are not the same with another batch size."""
    run = observed(
        FedSGD(), observation=Observation("training", batch_size=5, victims=24, seed=0), moments=moments, batch_size=4
    )
    exchanges = ThreatModel(seat="client-1").view(run).exchanges()
    assert [exchange.sent.round for exchange in exchanges] == list(range(8))
    for exchange in exchanges:
        truth = run.truth(exchange.sent.key)
        for name, tensor in exchange.sent.tensors.items():
            assert torch.allclose(tensor, truth.sent.tensors[name], atol=1e-5)
    server = ThreatModel().view(run)
    asked = [m for m in server.messages if m.kind is Kind.PARAMETERS and m.receiver == "client-0"]
    for exchange in server.exchanges():
        assert any(exchange.parameters is one.tensors or same(exchange.parameters, one.tensors) for one in asked)


def same(one, other) -> bool:
    return all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("key", [("nobody", 0), ("all but nobody", 0), (all_but("client-1"), 99)])
def test_a_message_that_is_not_there_has_no_truth(key):
    with pytest.raises(LeaktightError, match="There is no message"):
        observed(FedSGD()).truth(key)
