"""Protocols and aggregation: identities between them, and what the transcript holds."""

import dataclasses

import pytest
import torch

from leaktight.core.errors import LeaktightError
from leaktight.core.message import Kind, Message
from leaktight.learning.aggregate import mean, secure_sum
from leaktight.learning.gradient import gradient
from leaktight.learning.optimiser import Adam, Sgd
from leaktight.learning.protocol import FedAvg, FedSGD, RoundRobin, Server, federate


def messages() -> list[Message]:
    return [
        Message(
            Kind.UPDATE,
            f"client-{k}",
            "server",
            0,
            {"a": torch.full((2,), float(k))},
            {"examples": 5.0, "owned": float(k + 1)},
        )
        for k in range(3)
    ]


def test_mean_and_weighted_mean():
    assert mean(messages())["a"].tolist() == [1.0, 1.0]
    assert mean(messages(), weighted=True)["a"].tolist() == pytest.approx([8 / 6, 8 / 6])


def test_what_cannot_be_aggregated_is_refused():
    with pytest.raises(LeaktightError, match="no participant"):
        mean([])
    odd = [*messages(), dataclasses.replace(messages()[0], tensors={"b": torch.zeros(2)})]
    with pytest.raises(LeaktightError, match="the same tensors"):
        mean(odd)


def test_a_secure_sum_says_nothing_of_single_participants():
    total = secure_sum(messages())
    assert total.sender == "sum"
    assert total.facts == {"examples": 15.0, "owned": 6.0, "participants": 3.0}
    assert total.tensors["a"].tolist() == [1.0, 1.0]


def test_one_round_of_fedsgd_is_one_step_on_the_joint_batch(make, task, data):
    clients = [make(f"client-{k}", slice(20 * k, 20 * k + 20), batch_size=20) for k in range(3)]
    server = Server(task.public_parameters(), Sgd(learning_rate=0.3))
    FedSGD().round(server, clients, 0)
    joint = gradient(task, task.public_parameters(), data).tensors
    for name, start in task.public_parameters().items():
        assert torch.allclose(server.parameters[name], start - 0.3 * joint[name], atol=1e-6)


def test_the_server_s_adam_keeps_its_moments(make, task):
    server, fresh = Server(task.public_parameters(), Adam()), Server(task.public_parameters(), Adam())
    client = make()
    federate(FedSGD(), server, [client], 3)
    for number in range(3):
        FedSGD().round(fresh, [client], number)
        fresh = Server(fresh.parameters, Adam())
    assert not torch.allclose(server.parameters["head.bias"], fresh.parameters["head.bias"])


def test_round_robin_applies_each_update_before_the_next_download(make, task):
    clients = [make(f"client-{k}", slice(30 * k, 30 * k + 30), shares=Kind.UPDATE, local_steps=2) for k in range(2)]
    server = Server(task.public_parameters())
    transcript = RoundRobin(local_steps=2).round(server, clients, 0)
    asks = [message for message in transcript if message.kind is Kind.PARAMETERS]
    update = transcript[1]
    for name in asks[0].tensors:
        assert torch.allclose(asks[1].tensors[name], asks[0].tensors[name] + update.tensors[name])


def test_under_fedavg_all_download_the_same(make, task):
    clients = [make(f"client-{k}", slice(30 * k, 30 * k + 30), shares=Kind.UPDATE, local_steps=2) for k in range(2)]
    transcript = FedAvg(local_steps=2).round(Server(task.public_parameters()), clients, 0)
    assert torch.equal(transcript[0].tensors["head.weight"], transcript[2].tensors["head.weight"])


def test_secure_aggregation_trains_the_same_model_with_nothing_single_in_the_transcript(make, task):
    models = []
    for aggregation in ("mean", "secure"):
        clients = [make(f"client-{k}", slice(30 * k, 30 * k + 30), shares=Kind.UPDATE, local_steps=2) for k in range(2)]
        server = Server(task.public_parameters())
        transcript = FedAvg(local_steps=2, aggregation=aggregation).round(server, clients, 0)
        models.append(server.parameters)
    assert {message.sender for message in transcript} == {"server", "sum"}
    assert all(torch.equal(models[0][name], models[1][name]) for name in models[0])


def test_training_learns(make, task, data):
    clients = [
        make(f"client-{k}", slice(30 * k, 30 * k + 30), shares=Kind.UPDATE, local_steps=4, batch_size=10)
        for k in range(2)
    ]
    server = Server(task.public_parameters())
    played = []
    federate(FedAvg(local_steps=4), server, clients, 60, played.append)
    right = (task.forward(server.parameters, data.inputs).argmax(1) == data.labels).float().mean()
    assert played == list(range(1, 61))
    assert right > 0.9
