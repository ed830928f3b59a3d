"""Clients whose network is in training mode: what they send is what plain torch training would."""

import copy
import dataclasses

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from leaktight.core.defence import Chain, Undefended
from leaktight.core.errors import Refusal
from leaktight.core.local import Local
from leaktight.core.message import Kind, Message
from leaktight.core.run import Run
from leaktight.core.task import Batch, Model
from leaktight.core.threat import ThreatModel
from leaktight.data import Digits
from leaktight.defences import DPSGD, GaussianNoise, LocalDP, Polarization, Pruning, TopK, Withhold
from leaktight.learning import FedAvg, Federated, FedSGD, Sgd, classification
from leaktight.learning.client import Client
from leaktight.learning.protocol import Server
from leaktight.models import Factory, wrap

SHAPE, CLASSES = (2, 5, 5), 3


def plain():
    torch.manual_seed(1)
    return nn.Sequential(
        nn.Conv2d(2, 4, 3),
        nn.BatchNorm2d(4, momentum=0.3),
        nn.ReLU(),
        nn.Flatten(),
        nn.BatchNorm1d(36),
        nn.Linear(36, CLASSES),
    )


CODE = """
from torch import nn

def net(shape, classes):
    return nn.Sequential(
        nn.Conv2d(shape[0], 8, 3, stride=2), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Dropout(0.2),
        nn.Linear(8 * ((shape[1] - 1) // 2) ** 2, classes),
    )
"""


def task_of(module):
    body, head = wrap(module, SHAPE, CLASSES)
    return classification(Model(body, head), SHAPE, CLASSES)


def batch(count, seed=0):
    rng = torch.Generator().manual_seed(seed)
    return Batch(torch.rand(count, *SHAPE, generator=rng), torch.randint(CLASSES, (count,), generator=rng))


def client(task, data, defence=None, **settings):
    return Client("client-0", task, data, defence or Undefended(), Local("client-0", seed=0), **settings)


def ask(task, round=0):
    return Message(Kind.PARAMETERS, "server", "client-0", round, task.public_state())


def test_a_gradient_comes_with_what_the_running_statistics_moved_by():
    module, data = plain(), batch(6)
    task = task_of(module)
    sent = client(task, data, batch_size=6).respond(ask(task)).tensors
    before = copy.deepcopy(module.state_dict())
    F.cross_entropy(module(data.inputs), data.labels).backward()
    for name, parameter in module.named_parameters():
        wire = f"head.{name.removeprefix('5.')}" if name.startswith("5.") else f"body.{name}"
        torch.testing.assert_close(sent[wire], parameter.grad, rtol=1e-4, atol=1e-6)
    for name, buffer in module.named_buffers():
        if buffer.is_floating_point():
            torch.testing.assert_close(sent[f"body.{name}"], buffer - before[name], rtol=1e-4, atol=1e-6)
    assert len(sent) == len(list(module.parameters())) + 4


def test_an_update_is_that_of_plain_training():
    module, data = plain(), batch(12)
    task = task_of(module)
    party = client(task, data, batch_size=4, local_steps=3, shares=Kind.UPDATE, optimiser=Sgd(learning_rate=0.1))
    truth = party.answer(ask(task))
    before, steps = copy.deepcopy(module.state_dict()), torch.optim.SGD(module.parameters(), lr=0.1)
    for part in torch.arange(12).split(4):
        steps.zero_grad()
        F.cross_entropy(module(truth.used.inputs[part]), truth.used.labels[part]).backward()
        steps.step()
    for name, tensor in module.state_dict().items():
        if tensor.is_floating_point():
            wire = f"head.{name.removeprefix('5.')}" if name.startswith("5.") else f"body.{name}"
            torch.testing.assert_close(truth.sent.tensors[wire], tensor - before[name], rtol=1e-3, atol=1e-5)


def test_the_statistics_behind_a_message_are_written_down():
    task, data = task_of(plain()), batch(6)
    truth = client(task, data, batch_size=6).answer(ask(task))
    seen = task.model.body[0](truth.used.inputs)
    torch.testing.assert_close(truth.statistics["body.1.running_mean"], seen.mean((0, 2, 3)))
    torch.testing.assert_close(truth.statistics["body.1.running_var"], seen.transpose(0, 1).flatten(1).var(1))


def test_masks_come_from_the_partys_own_stream():
    task, data = task_of(nn.Sequential(nn.Flatten(), nn.Dropout(0.5), nn.Linear(50, CLASSES))), batch(4)
    first, again = (client(task, data, batch_size=4).answer(ask(task)) for _ in range(2))
    later = client(task, data, batch_size=4).answer(ask(task, round=1))
    [use] = first.masks
    assert torch.equal(first.masks[use], again.masks[use])
    assert not torch.equal(first.masks[use], later.masks[use])
    assert set(first.masks[use].unique().tolist()) == {0.0, 2.0}
    inputs = first.used.inputs.flatten(1) * first.masks[use]
    head = task.model.head
    slopes = (head(inputs).softmax(1) - F.one_hot(first.used.labels, CLASSES)) / 4
    torch.testing.assert_close(first.sent.tensors["head.weight"], slopes.T @ inputs)


def test_gradients_of_single_examples_meet_their_own_masks():
    task, data = task_of(nn.Sequential(nn.Flatten(), nn.Dropout(0.5), nn.Linear(50, CLASSES))), batch(4)
    plainly = client(task, data, batch_size=4).answer(ask(task))
    clipped = client(task, data, DPSGD(clip=1e6, multiplier=0.0), batch_size=4).answer(ask(task))
    torch.testing.assert_close(plainly.sent.tensors["head.weight"], clipped.sent.tensors["head.weight"])


def test_only_what_requires_a_gradient_is_sent():
    module = plain()
    module[0].requires_grad_(False)
    task = task_of(module)
    sent = client(task, batch(4), batch_size=4).respond(ask(task)).tensors
    assert "body.0.weight" not in sent
    assert "body.1.weight" in sent
    assert "body.1.running_mean" in sent


@pytest.mark.parametrize("defence", [GaussianNoise(std=0.5), TopK(share=0.1), Pruning(rate=0.9), LocalDP()])
def test_defences_of_messages_change_buffers_like_everything_else(defence):
    task, data = task_of(plain()), batch(6)
    truth = client(task, data, defence, batch_size=6).answer(ask(task))
    names = list(task.public_running())
    assert all(name in truth.sent.tensors for name in names)
    assert any(not torch.equal(truth.clean.tensors[name], truth.sent.tensors[name]) for name in names)


def test_running_statistics_can_be_withheld_alone():
    task, data = task_of(plain()), batch(6)
    defence = Withhold(parts=("running_mean", "running_var"))
    sent = client(task, data, defence, batch_size=6).respond(ask(task)).tensors
    assert sent.keys() == task.public_parameters().keys()
    assert Withhold().key == Withhold(parts=()).key
    assert "parts" not in Withhold().to_dict()


@pytest.mark.parametrize("defence", [Polarization(), GaussianNoise(each="step"), Chain(links=(Polarization(),))])
def test_a_defence_that_lets_buffers_pass_is_refused(defence):
    with pytest.raises(Refusal, match=r"does not touch the running statistics of batch norm, such as `body.1.running"):
        client(task_of(plain()), batch(6), defence)


def test_a_defence_of_messages_beside_it_makes_up_for_that():
    chain = Chain(links=(Polarization(), Withhold(parts=("running_mean", "running_var"))))
    task = task_of(plain())
    sent = client(task, batch(6), chain, batch_size=6).respond(ask(task)).tensors
    assert sent.keys() == task.public_parameters().keys()


def test_gradients_per_example_are_refused_in_a_sentence():
    task, data = task_of(plain()), batch(6)
    with pytest.raises(Refusal, match=r"Batch norm `body.1` in training mode mixes the examples of a batch"):
        client(task, data, DPSGD())
    stateless = task_of(nn.Sequential(nn.BatchNorm2d(2, track_running_stats=False), nn.Flatten(), nn.Linear(50, 3)))
    with pytest.raises(Refusal, match=r"Batch norm `body.0` in training mode mixes the examples of a batch"):
        client(stateless, data, DPSGD(), batch_size=6).respond(ask(stateless))


@pytest.mark.parametrize("protocol", [FedSGD(optimiser=Sgd(learning_rate=0.1)), FedAvg(local_steps=2)])
def test_the_server_keeps_the_mean_of_running_statistics(protocol):
    task = task_of(plain())
    parties = [
        dataclasses.replace(
            client(task, batch(8, seed), batch_size=4, shares=protocol.shares, local_steps=protocol.local_steps),
            name=f"client-{seed}",
        )
        for seed in range(2)
    ]
    server = Server(task.public_state(), protocol.optimiser, running=frozenset(task.public_running()))
    messages = protocol.round(server, parties, 0)
    for name, before in task.public_running().items():
        moved = torch.stack([message.tensors[name] for message in messages if message.kind is not Kind.PARAMETERS])
        torch.testing.assert_close(server.parameters[name], before + moved.mean(0))


def test_a_variance_never_falls_below_zero():
    server = Server({"a.weight": torch.ones(1), "a.running_var": torch.ones(2)}, running=frozenset({"a.running_var"}))
    server.add({"a.running_var": torch.tensor([-3.0, 0.5])})
    assert server.parameters["a.running_var"].tolist() == [0.0, 1.5]


def test_a_federation_trains_and_is_evaluated_by_its_running_statistics(tmp_path, monkeypatch):
    (tmp_path / "my_normed.py").write_text(CODE)
    monkeypatch.syspath_prepend(tmp_path)
    scenario = Federated(
        data=Digits(size=8), model=Factory(function="my_normed:net"), participants=2, rounds=30,
        protocol=FedAvg(optimiser=Sgd(learning_rate=0.1), local_steps=4, aggregation="mean"),
    )  # fmt: skip
    training = scenario.train(Undefended(), seed=0)
    assert training.utility[0].value > 0.7
    assert "body.1.running_mean" in training.snapshots["end"].parameters


def test_a_participant_derives_the_mean_of_the_others_statistics():
    task = task_of(plain())
    parties = [
        dataclasses.replace(client(task, batch(6, seed), batch_size=6), name=f"client-{seed}") for seed in range(3)
    ]
    protocol = FedSGD(optimiser=Sgd(learning_rate=0.1))
    server = Server(task.public_state(), protocol.optimiser, running=frozenset(task.public_running()))
    messages = [*protocol.round(server, parties, 0), server.ask("client-0", 1)]
    run = Run(tuple(messages), task, Undefended(), {})
    [exchange] = ThreatModel(seat="client-0").view(run).exchanges()
    sent = {message.sender: message.tensors for message in messages if message.kind is Kind.GRADIENT}
    for name in ("body.1.running_mean", "body.1.weight", "head.bias"):
        wanted = (sent["client-1"][name] + sent["client-2"][name]) / 2
        torch.testing.assert_close(exchange.sent.tensors[name], wanted, rtol=1e-3, atol=1e-5)
