"""Withheld layers: they stay as they are, the rest trains, and everybody sees what was sent."""

import pytest
import torch

from leaktight.core.defence import Undefended
from leaktight.core.errors import LeaktightError
from leaktight.core.message import Kind, Message, layer_of
from leaktight.core.run import all_but
from leaktight.core.scenario import Observation
from leaktight.core.threat import ThreatModel
from leaktight.data import ClassProperty, Digits
from leaktight.defences import LayerGuard, Withhold
from leaktight.learning import Adam, FedAvg, Federated, FedSGD, RoundRobin, Sgd, mean, secure_sum
from leaktight.learning.protocol import Server
from leaktight.models import MLP

HEAD = Withhold(layers=("head",))
PROTOCOLS = [
    FedSGD(optimiser=Sgd(momentum=0.9)),
    FedSGD(optimiser=Adam()),
    FedSGD(aggregation="secure"),
    FedAvg(local_steps=2),
    FedAvg(local_steps=2, aggregation="weighted"),
    RoundRobin(local_steps=2),
]


def parts(tensors, layer):
    return {name: tensor for name, tensor in tensors.items() if layer_of(name) == layer}


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=str)
def test_the_server_leaves_alone_what_nobody_sends(make, task, protocol):
    settings = {"shares": protocol.shares, "local_steps": protocol.local_steps}
    clients = [make(f"client-{k}", slice(30 * k, 30 * k + 30), HEAD, **settings) for k in range(2)]
    start = task.public_parameters()
    server = Server(start, protocol.optimiser)
    for number in range(3):
        sent = [m for m in protocol.round(server, clients, number) if m.kind is protocol.shares]
        assert all(set(map(layer_of, message.tensors)) == {"body.0"} for message in sent)
    for name, tensor in server.parameters.items():
        assert torch.equal(tensor, start[name]) == (layer_of(name) == "head")
    asked = server.ask("client-0", 3).tensors
    assert list(asked) == list(start)
    assert torch.equal(asked["body.0.weight"], server.parameters["body.0.weight"])


def test_the_rest_steps_as_if_the_layer_had_sent_zeros(make, task):
    server, other = Server(task.public_parameters()), Server(task.public_parameters())
    sent = make(defence=HEAD).respond(server.ask("client-0", 0)).tensors
    server.follow(dict(sent), 0)
    other.follow({name: sent.get(name, torch.zeros_like(tensor)) for name, tensor in other.parameters.items()}, 0)
    assert all(torch.equal(tensor, other.parameters[name]) for name, tensor in server.parameters.items())


def message(sender, *names):
    facts = {"examples": 2.0, "owned": 3.0}
    return Message(Kind.GRADIENT, sender, "server", 0, {name: torch.ones(2) for name in names}, facts)


def test_participants_must_withhold_the_same():
    for combine in (mean, secure_sum):
        with pytest.raises(
            LeaktightError, match=r"b must send the same tensors as a. They differ in \['head.weight'\]"
        ):
            combine([message("a", "body.weight", "head.weight"), message("b", "body.weight")])


def test_nothing_at_all_is_a_mean_too():
    assert mean([message("a"), message("b")]) == {}
    total = secure_sum([message("a"), message("b")])
    assert (total.tensors, total.facts["examples"]) == ({}, 4.0)


def federation(**settings):
    return Federated(data=Digits(), model=MLP(hidden=(16,)), participants=3, **{"rounds": 30, "moments": 2, **settings})


@pytest.mark.parametrize("layer", ["body.linear1", "head"])
def test_a_guarded_federation_trains_what_it_shares(layer):
    scenario = federation(protocol=FedAvg(local_steps=4))
    others = [other for other in ("body.linear1", "head") if other != layer]
    trained = scenario.train(LayerGuard(layers=(layer, *others)), seed=0)
    first, last = (trained.snapshots[stage].parameters for stage in ("initial", "end"))
    assert all(torch.equal(tensor, last[name]) for name, tensor in parts(first, layer).items())
    assert all(not torch.equal(tensor, last[name]) for name, tensor in parts(first, others[0]).items())
    [accuracy] = [reading.value for reading in trained.utility if reading.name == "accuracy"]
    assert accuracy > 0.5  # a tenth is chance; a random layer still carries the other one


def test_who_withholds_everything_learns_nothing():
    trained = federation(rounds=3).train(Withhold(), seed=0)
    first, last = (trained.snapshots[stage].parameters for stage in ("initial", "end"))
    assert all(torch.equal(tensor, last[name]) for name, tensor in first.items())


@pytest.mark.parametrize("aggregation", ["mean", "secure"])
def test_truth_and_view_speak_of_what_was_sent(aggregation):
    scenario, defence = federation(protocol=FedSGD(aggregation=aggregation), rounds=4), LayerGuard(layers=("head",))
    run = scenario.observe(scenario.train(defence, 0), defence, Observation("end", batch_size=4, victims=3, seed=0))
    for exchange in ThreatModel().view(run).exchanges():
        truth = run.truth(exchange.sent.key)
        assert set(map(layer_of, exchange.sent.tensors)) == {"body.linear1"}
        assert exchange.parameters.keys() == truth.plain.tensors.keys() == run.public.public_parameters().keys()
        assert exchange.sent.tensors.keys() == truth.sent.tensors.keys()


@pytest.mark.parametrize("protocol", [FedSGD(), FedAvg(local_steps=2)], ids=str)
def test_a_participant_tells_the_mean_of_what_the_others_sent(protocol):
    scenario, defence = federation(protocol=protocol, rounds=8), LayerGuard(layers=("head",))
    run = scenario.observe(
        scenario.train(defence, 0), defence, Observation("training", batch_size=4, victims=12, seed=0)
    )
    exchanges = ThreatModel(seat="client-1").view(run).exchanges()
    assert len(exchanges) == 4
    for exchange in exchanges:
        assert exchange.sent.sender == all_but("client-1")
        truth = run.truth(exchange.sent.key).sent.tensors
        assert list(exchange.sent.tensors) == list(truth) == ["body.linear1.weight", "body.linear1.bias"]
        assert all(torch.allclose(tensor, truth[name], atol=1e-5) for name, tensor in exchange.sent.tensors.items())


def test_where_everything_is_withheld_a_participant_can_tell_nothing():
    scenario = federation(rounds=8)
    run = scenario.observe(
        scenario.train(Withhold(), 0), Withhold(), Observation("training", batch_size=4, victims=6, seed=0)
    )
    assert ThreatModel(seat="client-1").view(run).exchanges() == ()


def test_all_participants_guard_the_same_layers():
    scenario, defence = federation(rounds=2), LayerGuard(public=ClassProperty(data=Digits(), label=0))
    trained = scenario.train(defence, seed=0)
    chosen = [memory["defence"]["guarded"] for memory in trained.snapshots["end"].memories.values()]
    assert len(chosen) == 3
    assert chosen[0] == chosen[1] == chosen[2]
    run = scenario.observe(trained, defence, Observation("end", batch_size=4, victims=6, seed=0))
    plain = scenario.observe(scenario.train(Undefended(), 0), Undefended(), Observation("end", 4, 6, 0))
    sent = {tuple(ground_truth.sent.tensors) for ground_truth in run.truths.values()}
    assert len(sent) == 1
    every = next(iter(plain.truths.values())).sent.tensors
    assert {layer_of(name) for name in every.keys() - set(*sent)} == set(chosen[0])
