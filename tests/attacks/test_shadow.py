"""Shadow messages: at the victim's own examples they are what the victim sent, whatever it sends and whoever is averaged in."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from leaktight.attacks.shadow import Moment, moments, shadow_messages
from leaktight.core.defence import Undefended
from leaktight.core.errors import Refusal
from leaktight.core.message import Kind
from leaktight.core.random import stream
from leaktight.core.run import all_but
from leaktight.core.scenario import Observation
from leaktight.core.threat import Knows, ThreatModel
from leaktight.data import Parity
from leaktight.defences import GaussianNoise, Pruning, TopK
from leaktight.learning import Adam, ByProperty, FedAvg, Federated, FedSGD, RoundRobin, Sgd, gradient
from leaktight.models import MLP
from leaktight.testing import toy_batch, toy_run, toy_task

THREAT = ThreatModel(knows=frozenset({Knows.LOCAL_STEPS}))


def observed(protocol, participants=2, defence=None, victims=8, **changes):
    settings = {
        "data": Parity(),
        "model": MLP(hidden=(8,)),
        "rounds": 6,
        "moments": 2,
        "schedule": ByProperty(),
        **changes,
    }
    scenario = Federated(participants=participants, protocol=protocol, **settings)
    defence = defence or Undefended()
    return scenario.observe(scenario.train(defence, 0), defence, Observation("training", 4, victims, 0))


def replayed(view, run, exchange, defence=None):
    """Return the shadow of a message at the examples that are behind it, and the message."""
    truth = run.truth(exchange.sent.key).raw
    [moment] = moments(view, [exchange])
    [found] = shadow_messages(view.task, moment, truth, torch.arange(len(truth))[None], stream(0), defence)
    return {name: tensor[0] for name, tensor in found.items()}, exchange.sent.tensors


def require_close(one, other):
    assert one.keys() == other.keys()
    for name, tensor in one.items():
        assert torch.allclose(tensor, other[name], rtol=1e-3, atol=1e-6), name


@pytest.mark.parametrize("optimiser", [Sgd(learning_rate=0.1), Sgd(learning_rate=0.1, momentum=0.9), Adam()], ids=str)
@pytest.mark.parametrize("protocol", [FedSGD, FedAvg, RoundRobin])
def test_at_the_victim_s_examples_it_is_the_victim_s_message(protocol, optimiser):
    chosen = {"optimiser": optimiser} | ({} if protocol is FedSGD else {"local_steps": 1})
    run = observed(protocol(**chosen))
    view = THREAT.view(run)
    for exchange in view.exchanges():
        require_close(*replayed(view, run, exchange))


@pytest.mark.parametrize("protocol", [FedSGD(), FedAvg(local_steps=1)], ids=str)
@pytest.mark.parametrize("participants", [2, 4])
def test_so_it_is_for_the_mean_of_all_others(participants, protocol):
    run = observed(protocol, participants, victims=4 * participants)
    view = ThreatModel(seat="client-1").view(run)
    for exchange in view.exchanges():
        assert exchange.sent.sender == all_but("client-1")
        [moment] = moments(view, [exchange])
        assert (moment.parties, moment.examples) == (participants - 1, 4)
        one, other = replayed(view, run, exchange)
        assert all(torch.allclose(one[name], other[name], atol=1e-5) for name in one)


@pytest.mark.parametrize(
    "protocol", [FedSGD(aggregation="secure"), FedAvg(local_steps=1, aggregation="secure")], ids=str
)
def test_and_for_a_secure_sum(protocol):
    run = observed(protocol, participants=3, victims=4)
    view = THREAT.view(run)
    for exchange in view.exchanges():
        [moment] = moments(view, [exchange])
        assert (moment.parties, moment.examples) == (3, 4)
        require_close(*replayed(view, run, exchange))


def test_local_steps_are_played():
    run = observed(FedAvg(local_steps=3, optimiser=Sgd(learning_rate=0.5)))
    view = THREAT.view(run)
    [moment] = moments(view, view.exchanges()[:1])
    assert (moment.kind, moment.local_steps, moment.examples) == (Kind.UPDATE, 3, 12)
    assert moment.optimiser == Sgd(learning_rate=0.5)
    # Twelve times the same example: three steps on it, in whatever order.
    one = view.task.model_parameters(moment.parameters)
    pool = run.truths[view.exchanges()[0].sent.key].raw
    for _ in range(3):
        slopes = gradient(view.task, one, pool.take(torch.tensor([5]))).tensors
        one = {name: tensor - 0.5 * slopes[name] for name, tensor in one.items()}
    [found] = shadow_messages(view.task, moment, pool, torch.full((1, 12), 5), stream(0))
    require_close(
        {name: tensor[0] for name, tensor in found.items()}, {name: one[name] - moment.parameters[name] for name in one}
    )


@pytest.mark.parametrize("defence", [Pruning(rate=0.7), TopK(share=0.2)], ids=str)
def test_a_known_defence_is_replayed(defence):
    run = toy_run(defence, rounds=1, batch_size=4)
    view = THREAT.view(run)
    require_close(*replayed(view, run, view.exchanges()[0], defence))
    plain, other = replayed(view, run, view.exchanges()[0])
    assert not torch.allclose(plain["body.1.weight"], other["body.1.weight"], atol=1e-6)


def test_noise_is_the_attacker_s_own_and_new_each_time():
    batch = toy_batch(4)
    view = THREAT.view(toy_run(GaussianNoise(std=0.1), rounds=1, batch_size=4))
    [moment] = moments(view, view.exchanges())
    members = torch.arange(4).expand(40, 4)
    found = [
        sent["head.bias"]
        for sent in shadow_messages(view.task, moment, batch, members, stream(0), GaussianNoise(std=0.1))
    ]
    drawn = torch.cat(found)
    assert drawn.shape == (40, 4)
    assert drawn.std(0).mean().item() == pytest.approx(0.1, rel=0.2)
    again = [
        sent["head.bias"]
        for sent in shadow_messages(view.task, moment, batch, members, stream(0), GaussianNoise(std=0.1))
    ]
    assert torch.equal(torch.cat(again), drawn)


def test_a_defence_remembers_nothing_of_the_message_before():
    # Top-k adds what it held back to the next message; two of the attacker's own are two participants.
    view = THREAT.view(toy_run(rounds=1, batch_size=4))
    [moment] = moments(view, view.exchanges())
    one, other = shadow_messages(
        view.task, moment, toy_batch(4), torch.arange(4).expand(2, 4), stream(0), TopK(share=0.1)
    )
    require_close(one, other)


def test_parameters_are_told_apart_by_their_values():
    run = toy_run(rounds=3, batch_size=2)
    view = THREAT.view(run)
    assert len(moments(view, view.exchanges())) == 1
    moved = [
        dataclasses.replace(exchange, parameters={name: tensor + place for name, tensor in exchange.parameters.items()})
        for place, exchange in enumerate(view.exchanges())
    ]
    assert len(moments(view, moved)) == 3
    assert len(moments(view, [*moved, *moved])) == 3


def test_messages_of_another_size_are_another_moment():
    view = THREAT.view(toy_run(rounds=2, batch_size=2))
    one, other = view.exchanges()
    larger = dataclasses.replace(other, sent=dataclasses.replace(other.sent, facts={"examples": 5.0}))
    assert [moment.examples for moment in moments(view, [one, larger])] == [2, 5]


def test_unknown_steps_are_refused():
    view = ThreatModel(knows=frozenset()).view(observed(FedAvg(local_steps=2)))
    with pytest.raises(Refusal, match="Add `local_steps` to `knows` in the threat model"):
        moments(view, view.exchanges())


def test_gradients_come_stacked_and_in_order():
    task, pool = toy_task(), toy_batch(10)
    moment = Moment(task.public_parameters(), Kind.GRADIENT, 2, 3)
    members = torch.randint(10, (5, 6), generator=torch.Generator().manual_seed(0))
    [together] = shadow_messages(task, moment, pool, members, stream(0))
    alone = [next(iter(shadow_messages(task, moment, pool, row[None], stream(0)))) for row in members]
    for name, tensor in together.items():
        assert torch.allclose(tensor, torch.cat([each[name] for each in alone]), atol=1e-6)


def test_an_undefended_participant_and_none_at_all_are_the_same():
    task, pool = toy_task(), toy_batch(6)
    moment = Moment(task.public_parameters(), Kind.GRADIENT, 1, 6)
    one, other = (
        next(iter(shadow_messages(task, moment, pool, torch.arange(6)[None], stream(0), each)))
        for each in (None, Undefended())
    )
    assert all(torch.equal(one[name], other[name]) for name in one)
