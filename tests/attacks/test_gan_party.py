"""GAN party: what it sends, what it keeps, what it refuses; and that it can be put away and taken out again between any two turns."""

from __future__ import annotations

import copy

import pytest
import torch

from leaktight.attacks import GanAttack
from leaktight.attacks.gan_party import CONTROLS, LOOKS, SCOPE, GanParty, draw_samples, restore_generator
from leaktight.core.defence import Undefended
from leaktight.core.draws import SeededDraws
from leaktight.core.errors import Refusal
from leaktight.core.local import Local
from leaktight.core.message import Kind, Message
from leaktight.core.party import Seat
from leaktight.core.random import stream
from leaktight.core.scenario import flatten, unflatten
from leaktight.core.task import Batch
from leaktight.defences import GaussianNoise, Polarization
from leaktight.defences.class_keys import ClassKeys
from leaktight.learning.client import Client
from leaktight.learning.optimiser import Sgd
from leaktight.testing.conformance import own_randomness, plain
from leaktight.testing.seats import SQUARES, squares
from leaktight.testing.toys import toy_task

torch.set_num_threads(1)
QUICK = {
    "generator": {"noise": 8, "width": 2},
    "generator_steps": 4,
    "batch_size": 8,
    "fakes": 6,
    "kept_rounds": 2,
    "samples": 10,
    "pictures": 3,
}
KEYS = ClassKeys(dimensions=64)


def client_seat(defence=None, memory=None, known=None, data=None, seed=0):
    """Return the seat of a participant who owns class 2 of four."""
    defence = defence or Undefended()
    public = defence.on_agree(toy_task(shape=SQUARES))
    local = Local("client-1", seed, memory=memory if memory is not None else {})
    own = data or squares(20, (2,))
    honest = Client("client-1", public, own, defence, local, 5, 4, Sgd(learning_rate=0.1), Kind.UPDATE)
    return Seat("client-1", public, own, local, honest, known or {})


def party(seat=None, **settings):
    return GanParty(GanAttack(**{**QUICK, **settings}), seat or client_seat())


def ask(seat, number=0):
    return Message(Kind.PARAMETERS, "server", seat.name, number, seat.task.public_parameters(), {"participants": 1.0})


def same(one, other):
    one, other = flatten(one), flatten(other)
    return one.keys() == other.keys() and all(
        torch.equal(torch.as_tensor(one[n]), torch.as_tensor(other[n])) for n in one
    )


def test_it_answers_as_the_owner_of_the_seat_who_also_owned_the_fakes():
    seat = client_seat()
    sent = party(seat).respond(ask(seat))
    fakes = seat.local.memory[SCOPE]["fakes"]
    union = Batch.join([seat.data, Batch(fakes, torch.full((len(fakes),), 3))])
    expected = client_seat(data=union).honest.respond(ask(seat))
    assert sent.kind is Kind.UPDATE
    assert sent.key == expected.key == ("client-1", 0)
    assert all(torch.equal(tensor, expected.tensors[name]) for name, tensor in sent.tensors.items())


def test_its_update_teaches_the_model_that_fakes_are_of_the_fake_class():
    seat = client_seat()
    one = party(seat, fakes=40)
    message = ask(seat)
    sent = one.respond(message)
    fakes = seat.local.memory[SCOPE]["fakes"]
    before, after = (
        seat.task.forward(seat.task.model_parameters(parameters), fakes).softmax(1)[:, 3].mean()
        for parameters in (
            message.tensors,
            {name: message.tensors[name] + sent.tensors[name] for name in message.tensors},
        )
    )
    assert after > before + 0.1


def test_its_generator_learns_to_be_taken_for_the_victims_class():
    seat = client_seat()
    one = party(seat, generator_steps=60, optimiser={"kind": "adam", "learning_rate": 0.01}, victim_class=1)
    one.respond(ask(seat))
    new, old = (
        restore_generator(one.attack, SQUARES, Local("client-1", 0, memory=m)) for m in (seat.local.memory[SCOPE], {})
    )
    parameters = seat.task.model_parameters(seat.task.public_parameters())
    judged = [
        seat.task.forward(parameters, draw_samples(g, 8, 50, SeededDraws(stream(0)))).softmax(1)[:, 1].mean()
        for g in (new, old)
    ]
    assert judged[0] > judged[1] + 0.1


def test_the_first_generator_step_is_that_of_the_formula():
    seat = client_seat()
    one = party(seat, generator_steps=1, optimiser={"kind": "sgd", "learning_rate": 0.5}, victim_class=1)
    one.respond(ask(seat))
    own = Local("client-1", 0, path=(SCOPE,))
    own.begin(0)
    by_hand = restore_generator(one.attack, SQUARES, own)
    z = 2 * own.draws.uniforms((8, 8)) - 1
    scores = seat.task.model(by_hand(z))
    loss = -(scores[:, 1] - scores.logsumexp(1)).mean()
    names, leaves = zip(*by_hand.named_parameters(), strict=True)
    expected = {n: p - 0.5 * g for n, p, g in zip(names, leaves, torch.autograd.grad(loss, leaves), strict=True)}
    for name, tensor in seat.local.memory[SCOPE]["generator"].items():
        torch.testing.assert_close(tensor, expected[name])


def test_it_changes_neither_the_message_nor_its_own_examples_nor_the_model_and_draws_from_its_own_stream():
    seat = client_seat()
    message = ask(seat)
    before = copy.deepcopy((dict(message.tensors), seat.data.inputs, seat.task.model.state_dict()))
    with own_randomness("gan"):
        party(seat).respond(message)
    assert same(before[0], dict(message.tensors))
    assert torch.equal(before[1], seat.data.inputs)
    assert same(before[2], dict(seat.task.model.state_dict()))
    assert len(seat.honest.data) == len(seat.data) == 20


def test_same_seed_same_bytes_and_another_seed_others():
    seats = [client_seat(), client_seat(), client_seat(seed=1)]
    sent = [party(seat).respond(ask(seat)) for seat in seats]
    assert same(dict(sent[0].tensors), dict(sent[1].tensors))
    assert same(seats[0].local.memory, seats[1].local.memory)
    assert not same(dict(sent[0].tensors), dict(sent[2].tensors))


@pytest.mark.parametrize("optimiser", [{"kind": "adam"}, {"kind": "sgd", "momentum": 0.9}, {"kind": "sgd"}])
def test_a_party_that_is_rebuilt_from_its_memory_goes_on_as_if_nothing_had_happened(optimiser):
    through, first = client_seat(), client_seat()
    one = party(through, optimiser=optimiser)
    messages = [one.respond(ask(through, number)) for number in range(3)]
    for number in range(2):
        party(first, optimiser=optimiser).respond(ask(first, number))
    assert plain(first.local.memory)
    kept = unflatten({name: torch.as_tensor(value).clone() for name, value in flatten(first.local.memory).items()})
    again = client_seat(memory=kept)
    resumed = party(again, optimiser=optimiser).respond(ask(again, 2))
    assert same(dict(resumed.tensors), dict(messages[2].tensors))
    assert same(again.local.memory, through.local.memory)


def test_fakes_of_the_last_rounds_are_kept_and_older_ones_forgotten():
    seat = client_seat()
    one, seen = party(seat), []
    for number, count in enumerate([6, 12, 12]):
        one.respond(ask(seat, number))
        seen.append(seat.local.memory[SCOPE]["fakes"].clone())
        assert len(seen[-1]) == count
    assert torch.equal(seen[1][6:], seen[2][:6])


def test_pictures_of_a_few_evenly_spread_rounds_are_kept_from_the_same_noise():
    seat = client_seat()
    one = party(seat, generator_steps=1, fakes=2, kept_rounds=1)
    for number in range(30):
        one.respond(ask(seat, number))
        assert len(seat.local.memory[SCOPE]["history"]) <= LOOKS
    history = seat.local.memory[SCOPE]["history"]
    assert sorted(map(int, history)) == [0, 4, 8, 12, 16, 20, 24, 28]
    assert {tuple(pictures.shape) for pictures in history.values()} == {(3, *SQUARES)}
    still = party(seat, generator_steps=1, optimiser={"kind": "sgd", "learning_rate": 1e-12})
    still.seat.local.memory[SCOPE].pop("optimiser")
    still.respond(ask(seat, 32))
    torch.testing.assert_close(history["32"], history["28"], rtol=0, atol=0.05)


def test_steps_end_early_once_fakes_hit_for_long_enough(monkeypatch):
    seat = client_seat()
    seen = []
    one = party(seat, generator_steps=40, early_stop=0.5)
    target = one._aim(seat.task.model_parameters(seat.task.public_parameters()), seat.local)
    monkeypatch.setattr(GanParty, "_aim", lambda self, parameters, own: target)
    monkeypatch.setattr(
        type(target), "hits", lambda self, outputs: seen.append(0) or torch.tensor([len(seen) > 5] * len(outputs))
    )
    one.respond(ask(seat))
    assert len(seen) == 5 + 15


def test_without_an_early_stop_all_steps_are_taken():
    seat = client_seat()
    party(seat, generator_steps=18, optimiser={"kind": "adam"}).respond(ask(seat))
    assert seat.local.memory[SCOPE]["optimiser"]["linear.weight"]["step"] == 18


@pytest.mark.parametrize(
    ("settings", "data"),
    [
        ({"fake_class": 2}, None),
        ({"fake_class": 1, "victim_class": 1}, None),
        ({"fake_class": 4}, None),
        ({"victim_class": 4}, None),
        ({"victim_class": 2}, None),
        ({}, squares(8, (2, 3))),
    ],
)
def test_it_refuses_where_there_is_no_class_for_its_fakes_or_the_victims_is_its_own(settings, data):
    seat = client_seat(data=data)
    with pytest.raises(
        Refusal, match=r"gan needs the victim's class and another one for its fakes.*give the scenario `spare_classes`"
    ):
        party(seat, **settings)


def test_it_refuses_the_seat_of_somebody_who_is_no_participant():
    class Other:
        name = "feature-party"

    seat = client_seat()
    with pytest.raises(Refusal, match=r"gan needs the seat of a federation's participant. Got that of client-1"):
        party(Seat(seat.name, seat.task, seat.data, seat.local, Other()))


@pytest.mark.parametrize(
    "defence", [GaussianNoise(std=0.01), Polarization(bits=4), KEYS, ClassKeys(dimensions=64, weight_decay=0.01)]
)
def test_it_trains_along_under_other_defences(defence):
    seat = client_seat(defence)
    sent = party(seat).respond(ask(seat))
    assert sent.tensors.keys() == ask(seat).tensors.keys()
    assert all(torch.isfinite(tensor).all() for tensor in sent.tensors.values())
    assert plain(seat.local.memory)


def test_with_keys_a_random_one_is_its_own_and_nobody_elses():
    seat = client_seat(KEYS)
    one = party(seat, class_key="random")
    parameters = seat.task.model_parameters(seat.task.public_parameters())
    target = one._aim(parameters, seat.local)
    assert target.key.norm().item() == pytest.approx(1, abs=1e-5)
    assert torch.equal(target.key, one._aim(parameters, seat.local).key)
    assert not torch.equal(
        target.key, party(client_seat(KEYS, seed=1), class_key="random")._aim(parameters, seat.local).key
    )
    one.respond(ask(seat))
    own = seat.local.memory["defence"]["keys"]
    assert set(one.close().tensors) == {"2"}
    assert (own @ target.key).abs().max() < 0.6


def test_generators_to_compare_with_follow_keys_of_their_own_and_change_nothing_that_is_sent():
    seats = {count: client_seat(KEYS) for count in (0, 2)}
    sent = {count: party(seat, controls=count).respond(ask(seat)) for count, seat in seats.items()}
    assert same(dict(sent[0].tensors), dict(sent[2].tensors))
    bare, compared = (seats[count].local.memory[SCOPE] for count in (0, 2))
    assert CONTROLS not in bare
    assert same(bare["generator"], compared["generator"])
    one, other = (compared[CONTROLS][name]["generator"]["linear.weight"] for name in "01")
    assert not torch.equal(one, other)
    assert not torch.equal(one, compared["generator"]["linear.weight"])


def test_without_keys_there_is_nothing_to_compare_with():
    seat = client_seat()
    party(seat, controls=2).respond(ask(seat))
    assert CONTROLS not in seat.local.memory[SCOPE]


def test_with_keys_it_uses_what_it_was_told_of_the_victims():
    exact = torch.nn.functional.normalize(torch.randn(64, generator=stream(0)), dim=0)
    known = {"keys/client-0/0": exact, "keys/client-0/1": -exact}
    seat = client_seat(KEYS, known=known)
    parameters = seat.task.model_parameters(seat.task.public_parameters())
    assert torch.equal(party(seat, class_key="exact")._aim(parameters, seat.local).key, exact)
    assert torch.equal(party(seat, class_key="exact", victim_class=1)._aim(parameters, seat.local).key, -exact)
    near = party(seat, class_key="distance", distance=0.7)._aim(parameters, seat.local).key
    assert (near - exact).norm().item() == pytest.approx(0.7, abs=1e-4)
    less = client_seat(KEYS, known={"keys/client-0/0": exact})
    with pytest.raises(Refusal, match=r"gan needs the key of class 1. Nobody else has one"):
        party(less, class_key="exact", victim_class=1)._aim(parameters, seat.local)


def test_with_keys_it_does_not_take_another_secret_for_a_key():
    seat = client_seat(KEYS, known={"labels/client-0/0": torch.ones(64)})
    with pytest.raises(Refusal, match=r"gan needs the key of class 0"):
        party(seat, class_key="exact").respond(ask(seat))


def test_the_generator_learns_an_exact_key():
    public = KEYS.on_agree(toy_task(shape=SQUARES))
    parameters = public.model_parameters(public.public_parameters())
    exact = public.forward(parameters, squares(1, (0,)).inputs)[0].detach()
    seat = client_seat(KEYS, known={"keys/client-0/0": exact})
    one = party(seat, class_key="exact", generator_steps=60, optimiser={"kind": "adam", "learning_rate": 0.01})
    one.respond(ask(seat))
    new, old = (
        restore_generator(one.attack, SQUARES, Local("client-1", 0, memory=m)) for m in (seat.local.memory[SCOPE], {})
    )
    fits = [
        (public.forward(parameters, draw_samples(g, 8, 50, SeededDraws(stream(0)))) @ exact).mean() for g in (new, old)
    ]
    assert fits[0] > fits[1] + 0.1
