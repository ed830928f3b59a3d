"""GAN targets: the losses of Hitaj et al. and of class keys, and estimates of keys."""

from __future__ import annotations

from statistics import fmean

import pytest
import torch
import torch.nn.functional as F

from leaktight.attacks import GanAttack
from leaktight.attacks.gan_party import SCOPE, GanParty
from leaktight.attacks.gan_target import KEPT, ClassTarget, KeyTarget, estimate_key, parameters_left
from leaktight.core.draws import SeededDraws
from leaktight.core.errors import Refusal
from leaktight.core.local import Local
from leaktight.core.message import Kind, Message
from leaktight.core.party import Seat
from leaktight.core.random import stream
from leaktight.defences.class_keys import ClassKeys
from leaktight.defences.key_theory import random_keys
from leaktight.learning import FedAvg, FedSGD, RoundRobin, Sgd
from leaktight.learning.client import Client
from leaktight.learning.protocol import Server
from leaktight.testing.seats import SQUARES, squares
from leaktight.testing.toys import toy_task


def unit(dimensions, name="key"):
    return random_keys(1, dimensions, SeededDraws(stream(0, name)))[0]


def test_the_loss_of_a_class_is_its_cross_entropy():
    scores = torch.randn(5, 4, generator=stream(0))
    expected = torch.nn.functional.cross_entropy(scores, torch.full((5,), 2), reduction="none")
    torch.testing.assert_close(ClassTarget(2, lambda outputs: outputs).loss(scores), expected)


def test_scores_are_those_of_the_task():
    target = ClassTarget(1, lambda outputs: outputs["scores"])
    outputs = {"scores": torch.tensor([[0.0, 2.0], [2.0, 0.0]])}
    assert target.hits(outputs).tolist() == [True, False]
    assert target.loss(outputs)[0] < target.loss(outputs)[1]


def test_the_loss_of_a_key_is_minus_the_inner_product():
    outputs = torch.nn.functional.normalize(torch.randn(6, 8, generator=stream(1)), dim=1)
    target = KeyTarget(unit(8), unit(8, "other"))
    expected = -(outputs.double() * target.key.double()).sum(1)
    torch.testing.assert_close(target.loss(outputs).double(), expected, rtol=0, atol=1e-6)


def test_a_fake_hits_a_key_that_fits_better_than_another():
    key, other = unit(64), unit(64, "other")
    assert KeyTarget(key, other).hits(torch.stack([key, other])).tolist() == [True, False]


torch.set_num_threads(1)
KEYS = ClassKeys(dimensions=64)
PUBLIC = KEYS.on_agree(toy_task(shape=SQUARES))
IMAGES = torch.rand(20, *SQUARES, generator=stream(0, "images"))


def participant(name, classes, seed=0):
    return Client(
        name, PUBLIC, squares(40, classes), KEYS, Local(name, seed), 10, 4, Sgd(learning_rate=0.02), Kind.UPDATE
    )


def ask(name, tensors, number=0, **facts):
    return Message(Kind.PARAMETERS, "server", name, number, tensors, {"participants": 1.0, **facts})


def answered(client, tensors, number=0):
    sent = client.respond(ask(client.name, tensors, number)).tensors
    return {name: tensor + sent[name] for name, tensor in tensors.items()}


def keys_of(client):
    found = client.local.memory["defence"]["keys"]
    return F.normalize(found[list(client.local.classes)].sum(0), dim=0)


def test_it_points_to_the_keys_that_others_train_for():
    overlaps, absent = [], []
    for seed in range(12):
        victim, before, earlier = participant("client-0", (0, 1), seed), PUBLIC.public_parameters(), None
        for number in range(3):
            after = answered(victim, before, number)
            earlier = estimate_key(
                PUBLIC, PUBLIC.model_parameters(before), PUBLIC.model_parameters(after), IMAGES, earlier
            )
            before = after
        overlaps.append((F.normalize(earlier, dim=0) @ keys_of(victim)).item())
        absent.append((F.normalize(earlier, dim=0) @ keys_of(participant("client-2", (0, 1), seed))).item())
    # Overlaps of random directions have a standard deviation of 1/8 in 64 dimensions, and so their mean over twelve one
    # of 0.036.
    assert fmean(overlaps) > 4 * 0.036
    assert abs(fmean(absent)) < 4 * 0.036


def test_each_turn_counts_by_its_direction_and_earlier_ones_fade():
    before = PUBLIC.public_parameters()
    after = answered(participant("client-0", (0, 1)), before)
    first = estimate_key(PUBLIC, before, after, IMAGES, None)
    assert first.norm().item() == pytest.approx(1, abs=1e-5)
    moved = PUBLIC.forward(after, IMAGES).mean(0) - PUBLIC.forward(before, IMAGES).mean(0)
    torch.testing.assert_close(first, F.normalize(moved, dim=0).detach(), atol=1e-5, rtol=1e-4)
    second = estimate_key(PUBLIC, before, after, IMAGES, 3 * first)
    torch.testing.assert_close(second, (3 * KEPT + 1) * first)
    assert not second.requires_grad


def test_where_nobody_did_anything_there_is_nothing_to_tell():
    before = PUBLIC.public_parameters()
    assert not estimate_key(PUBLIC, before, before, IMAGES, None).any()


@pytest.mark.parametrize(
    ("kind", "facts", "share"),
    [
        *(("update", {}, 1.0), ("update", {"participants": 4.0}, 0.25)),
        ("gradient", {"participants": 2.0, "learning_rate": 0.5}, -0.25),
    ],
)
def test_what_is_left_behind_has_as_much_of_the_own_answer_as_the_server_adds(kind, facts, share):
    handed = {"body.1.weight": torch.ones(2, 3), "body.1.bias": torch.zeros(2)}
    sent = Message(Kind(kind), "client-1", "server", 0, {"body.1.weight": torch.full((2, 3), 2.0)})
    left = parameters_left(ask("client-1", handed, **facts), sent)
    assert torch.equal(left["body.1.weight"], torch.full((2, 3), 1 + 2.0 * share))
    assert torch.equal(left["body.1.bias"], torch.zeros(2))
    left["body.1.bias"] += 1
    assert not handed["body.1.bias"].any()


@pytest.mark.parametrize(
    ("kind", "facts"),
    [
        ("update", {}),
        *(("gradient", {"participants": 2.0}), ("gradient", {"learning_rate": 0.5})),
        *(("gradient", {"participants": 2.0, "learning_rate": 0.5, name: 1.0}) for name in ("momentum", "adaptive")),
    ],
)
def test_a_participant_may_not_be_able_to_tell_what_its_answer_came_to(kind, facts):
    asked = Message(Kind.PARAMETERS, "server", "client-1", 0, {"weight": torch.ones(2)}, facts)
    assert parameters_left(asked, Message(Kind(kind), "client-1", "server", 0, {"weight": torch.ones(2)})) is None


@pytest.mark.parametrize(
    ("protocol", "told"),
    [
        (FedSGD(), True),
        (FedAvg(), True),
        (RoundRobin(), True),
        (FedAvg(aggregation="weighted"), False),
        (FedSGD(optimiser=Sgd(momentum=0.9)), False),
    ],
)
def test_protocols_say_what_it_takes_to_tell(protocol, told):
    handed = []

    class Listener:
        name = "client-1"

        def respond(self, message):
            handed.append(message)
            return Message(
                protocol.shares, self.name, "server", 0, {"weight": torch.ones(2)}, {"examples": 3.0, "owned": 3.0}
            )

    server = Server({"weight": torch.zeros(2)}, protocol.optimiser)
    messages = protocol.round(server, [Listener()], 0)
    left = parameters_left(handed[0], messages[-1])
    assert (left is not None) is told
    assert left is None or torch.allclose(left["weight"], server.parameters["weight"])


def test_an_attacker_follows_its_estimate_from_the_second_turn_on_and_needs_to_be_told_nothing():
    attack = GanAttack(
        generator={"noise": 8, "width": 2}, generator_steps=1, batch_size=8, fakes=6, class_key="estimated"
    )
    assert attack.needs == frozenset()
    honest, victim = participant("client-1", (2,)), participant("client-0", (0, 1))
    party = GanParty(attack, Seat("client-1", PUBLIC, honest.data, honest.local, honest, {}))
    parameters, estimates = PUBLIC.public_parameters(), []
    for number in range(3):
        parameters = answered(victim, parameters, number)
        asked = ask("client-1", parameters, number)
        sent = party.respond(asked)
        memory = honest.local.memory[SCOPE]
        estimates.append(memory.get("estimate"))
        parameters = parameters_left(asked, sent)
        assert all(torch.equal(memory["left"][name], tensor) for name, tensor in parameters.items())
    assert estimates[0] is None
    assert not torch.equal(estimates[1], estimates[2])
    own = honest.local.scope(SCOPE)
    target = party._aim(PUBLIC.model_parameters(answered(victim, parameters, 3)), own)
    assert torch.equal(target.key, F.normalize(own.memory["estimate"], dim=0))
    assert not torch.equal(own.memory["estimate"], estimates[2])


def test_an_attacker_who_cannot_tell_refuses_on_its_second_turn_unless_it_has_an_estimate():
    attack = GanAttack(
        generator={"noise": 8, "width": 2}, generator_steps=1, batch_size=8, fakes=6, class_key="estimated"
    )
    honest, victim = participant("client-1", (2,)), participant("client-0", (0, 1))
    party = GanParty(attack, Seat("client-1", PUBLIC, honest.data, honest.local, honest, {}))
    blind = Message(Kind.PARAMETERS, "server", "client-1", 0, PUBLIC.public_parameters())
    party.respond(blind)
    with pytest.raises(Refusal, match="gan cannot tell what others did since its last turn"):
        party.respond(blind)
    honest.local.memory.clear()
    asked = ask("client-1", PUBLIC.public_parameters())
    parameters = answered(victim, parameters_left(asked, party.respond(asked)))
    party.respond(Message(Kind.PARAMETERS, "server", "client-1", 1, parameters))
    before = honest.local.memory[SCOPE]["estimate"].clone()
    party.respond(Message(Kind.PARAMETERS, "server", "client-1", 2, parameters))
    assert torch.equal(honest.local.memory[SCOPE]["estimate"], before)


def test_an_attacker_alone_falls_back_on_a_random_key():
    attack = GanAttack(
        generator={"noise": 8, "width": 2}, generator_steps=1, batch_size=8, fakes=6, class_key="estimated"
    )
    honest = participant("client-1", (2,))
    party = GanParty(attack, Seat("client-1", PUBLIC, honest.data, honest.local, honest, {}))
    asked = ask("client-1", PUBLIC.public_parameters())
    parameters = parameters_left(asked, party.respond(asked))
    target = party._aim(PUBLIC.model_parameters(parameters), honest.local.scope(SCOPE))
    assert torch.equal(target.key, random_keys(1, 64, party._chance("key"))[0])
