"""The honest client: what it sends is what its optimiser did, and what stays home stays home."""

import copy
import dataclasses
from typing import Literal

import pytest
import torch
from torch import nn

from leaktight.core.defence import Chain, Defence
from leaktight.core.errors import InvalidValue, Refusal
from leaktight.core.message import Kind
from leaktight.core.task import Batch, Model
from leaktight.defences import DPSGD
from leaktight.learning.client import Client
from leaktight.learning.gradient import gradient
from leaktight.learning.optimiser import Adam, Sgd
from leaktight.learning.protocol import Server


class Annex(Defence):
    """Gives each party a private second head, as a polarization network does."""

    kind: Literal["test_annex"] = "test_annex"

    def on_task(self, task, local):
        private = nn.Linear(8, 2)
        with torch.no_grad():
            for parameter in private.parameters():
                parameter.copy_(local.draws.normal_like(parameter))

        class Both(nn.Module):
            def __init__(self):
                super().__init__()
                self.public, self.private = task.model.head, private

            def forward(self, features):
                return self.public(features), self.private(features)

        def wire(name):
            return None if name.startswith("head.private.") else task.wire(name.replace("head.public.", "head."))

        return dataclasses.replace(
            task,
            model=Model(task.model.body, Both()),
            loss=lambda out, labels: task.loss(out[0], labels) + out[1].square().sum(1),
            predict=lambda out: task.predict(out[0]),
            wire=wire,
        )


def ask(client: Client, round: int = 0):
    return Server(client.public.public_parameters()).ask(client.name, round)


def test_a_shared_gradient_is_the_gradient_of_its_batch(make, task):
    client = make(batch_size=5)
    found = client.answer(ask(client))
    sent = found.sent
    expected = gradient(task, task.public_parameters(), found.raw)
    assert sent.kind is Kind.GRADIENT
    assert sent.facts == {"examples": 5.0, "owned": 60.0}
    assert all(torch.equal(sent.tensors[name], expected.tensors[name]) for name in expected.tensors)


def test_an_update_is_what_plain_torch_does(make, task):
    client = make(batch_size=5, local_steps=3, shares=Kind.UPDATE, optimiser=Sgd(learning_rate=0.2))
    found = client.answer(ask(client))
    sent = found.sent
    model = task.copy().model
    optimiser = torch.optim.SGD(model.parameters(), lr=0.2)
    for inputs, labels in zip(found.raw.inputs.split(5), found.raw.labels.split(5), strict=True):
        optimiser.zero_grad()
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimiser.step()
    start = task.public_parameters()
    for name, tensor in model.tensors().items():
        assert torch.allclose(sent.tensors[name], tensor - start[name], atol=1e-6)
    assert sent.facts["local_steps"] == 3
    assert sent.facts["examples"] == 15


@pytest.mark.parametrize("shares", [Kind.GRADIENT, Kind.UPDATE])
def test_private_parameters_learn_at_home_and_are_never_sent(make, shares):
    client = make(defence=Annex(), shares=shares)
    names = set(client.public.public_parameters())
    first = client.task.model.head.private.weight.clone()
    sent = [client.respond(ask(client, number)) for number in range(2)]
    learned = client.local.memory["private"]["head.private.weight"]
    assert all(set(message.tensors) == names for message in sent)
    assert not torch.allclose(first, learned)
    shadow = learned.flatten()
    for message in sent:
        for tensor in message.tensors.values():
            assert not torch.isin(shadow, tensor.flatten()).any()


def test_a_client_rebuilt_from_its_local_goes_on_as_if_nothing_happened(make):
    whole, parts = make(defence=Annex(), shares=Kind.UPDATE), make(defence=Annex(), shares=Kind.UPDATE)
    whole.respond(ask(whole, 0))
    parts.respond(ask(parts, 0))
    rebuilt = make(defence=Annex(), shares=Kind.UPDATE)
    rebuilt.local.memory.update(parts.local.memory)
    one, other = whole.respond(ask(whole, 1)), rebuilt.respond(ask(rebuilt, 1))
    assert all(torch.equal(one.tensors[name], other.tensors[name]) for name in one.tensors)


def test_a_pass_over_the_data_uses_each_example_once(make):
    client = make(batch_size=6)
    first = torch.cat([client.batches(number)[0].inputs for number in range(10)])
    assert len(torch.unique(first, dim=0)) == 60
    assert not torch.equal(client.batches(0)[0].inputs, client.batches(10)[0].inputs)


def test_the_defence_does_not_change_which_examples_are_used(make):
    assert torch.equal(make().batches(3)[0].inputs, make(defence=Annex()).batches(3)[0].inputs)


def test_a_small_participant_uses_all_it_has(make):
    assert len(make(part=slice(0, 4), batch_size=32).batches(0)[0]) == 4


def test_wrong_settings_and_messages_are_refused(make):
    with pytest.raises(InvalidValue, match="1 local step"):
        make(local_steps=2)
    client = make()
    message = ask(client)
    with pytest.raises(InvalidValue, match=r"parameter `body.0.weight` must be among"):
        client.respond(dataclasses.replace(message, tensors={"other": torch.zeros(1)}))


def test_per_example_gradients_average_to_the_batch_gradient(task, data):
    each = gradient(task, task.public_parameters(), data, per_example=True)
    whole = gradient(task, task.public_parameters(), data)
    for name, tensor in each.mean().tensors.items():
        assert each.tensors[name].shape[0] == len(data)
        assert torch.allclose(tensor, whole.tensors[name], atol=1e-6)


def test_adam_is_torch_s():
    assert isinstance(Adam().over([torch.zeros(1)]), torch.optim.Adam)


@pytest.mark.parametrize("optimiser", [Sgd(momentum=0.9), Adam()], ids=str)
def test_moments_start_anew_in_every_round(make, optimiser):
    """A participant that took part in earlier rounds answers like one that is rebuilt for this one."""
    settings = {"shares": Kind.UPDATE, "local_steps": 2, "optimiser": optimiser}
    old, new = make(**settings), make(**settings)
    old.respond(ask(old, 0))
    one, other = (client.respond(ask(client, 1)).tensors for client in (old, new))
    assert all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("optimiser", [Sgd(momentum=0.9), Adam()], ids=str)
def test_moments_that_are_kept_go_on_as_if_there_were_no_rounds(make, optimiser):
    """Two turns of two steps end where one turn of four ends; a client rebuilt from its memory resumes like the old."""
    settings = {"shares": Kind.UPDATE, "optimiser": optimiser, "keep_moments": True}
    short, long = make(local_steps=2, **settings), make(local_steps=4, **settings)
    first = short.respond(ask(short, 0))
    start = ask(short).tensors
    between = {name: tensor + first.tensors[name] for name, tensor in start.items()}
    rebuilt = make(local_steps=2, **settings)
    rebuilt.local.memory.update(copy.deepcopy(short.local.memory))
    then = dataclasses.replace(ask(short, 1), tensors=between)
    second, again = short.respond(then), rebuilt.respond(then)
    whole = long.respond(ask(long, 0))
    for name, tensor in whole.tensors.items():
        torch.testing.assert_close(first.tensors[name] + second.tensors[name], tensor)
        assert torch.equal(second.tensors[name], again.tensors[name])
    assert second.facts["kept_moments"] == 1


def test_plain_steps_have_no_moments_to_keep(make):
    client = make(shares=Kind.UPDATE, keep_moments=True)
    assert "kept_moments" not in client.respond(ask(client)).facts


class Views(Defence):
    """Makes four examples out of each."""

    kind: Literal["test_views"] = "test_views"

    def on_batch(self, batch, local):
        return Batch.join([batch] * 4)


def test_more_examples_out_of_one_are_refused_where_each_is_bounded(make):
    """Each would be clipped by itself, and the one behind them would change four times what is counted."""
    client, free = make(defence=Chain(links=(Views(), DPSGD())), batch_size=5), make(defence=Views(), batch_size=5)
    with pytest.raises(
        Refusal, match=r"must see each example once, to bound what it changes. Got 20 examples made out of 5"
    ):
        client.respond(ask(client))
    assert free.respond(ask(free)).tensors
