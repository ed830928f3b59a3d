"""Seats: pictures that are easy to tell apart, and a small training run that an attacker can sit in."""

from __future__ import annotations

from typing import ClassVar, Literal

import pytest
import torch

from leaktight.attacks import Analytic, GanAttack
from leaktight.core.attack import Attack, GuessedSamples
from leaktight.core.message import Kind
from leaktight.core.run import all_but
from leaktight.core.threat import Knows
from leaktight.defences.class_keys import ClassKeys
from leaktight.testing import active_run, check_attack, squares
from leaktight.testing.conformance import ConformanceError
from leaktight.testing.seats import ATTACKER, OWNED, SQUARES, VICTIM

torch.set_num_threads(1)


class Spy(Attack):
    """Sits in its seat, does nothing dishonest, and remembers what it was handed."""

    kind: Literal["test_spy"] = "test_spy"
    claims: ClassVar[frozenset[str]] = frozenset({"samples"})
    image: Literal["light", "dark", "private"] = "dark"
    wants_keys: bool = False

    @property
    def needs(self):
        return frozenset({Knows.KEYS} if self.wants_keys else ())

    @property
    def active(self):
        return True

    def take(self, seat):
        seat.local.memory["known"] = {name.replace("/", " "): key for name, key in seat.known.items()}
        return seat.honest

    def run(self, view, rng):
        inputs = torch.zeros(20, *SQUARES)
        if self.image == "light":
            inputs[..., :4, :4] = 0.9
        return GuessedSamples(((all_but(view.seat), view.messages[-1].round),), inputs, 0, inputs[None], (0,))


def test_squares_are_light_in_one_quarter_and_follow_from_the_seed():
    batch = squares(30)
    assert batch.labels.bincount().tolist() == [10, 10, 10]
    quarters = batch.inputs[:, 0].unfold(1, 4, 4).unfold(2, 4, 4).mean((3, 4)).flatten(1)
    assert torch.equal(quarters.argmax(1), batch.labels)
    assert torch.equal(squares(30).inputs, batch.inputs)
    assert not torch.equal(squares(30, seed=1).inputs, batch.inputs)
    assert 0 <= batch.inputs.min() < batch.inputs.max() <= 1


def test_a_run_shows_one_message_of_each_and_the_other_side_of_the_honest_one():
    run = active_run(Spy(), rounds=2)
    assert [(m.kind, m.sender, m.receiver, m.round) for m in run.transcript] == [
        (Kind.PARAMETERS, "server", VICTIM, 2),
        (Kind.UPDATE, VICTIM, "server", 2),
        (Kind.PARAMETERS, "server", ATTACKER, 2),
        (Kind.UPDATE, ATTACKER, "server", 2),
    ]
    assert list(run.truths) == [(VICTIM, 2)]
    assert run.truths[VICTIM, 2].owned.labels.unique().tolist() == list(OWNED[VICTIM])
    assert set(run.locals) == {VICTIM, ATTACKER}
    assert run.auxiliary.labels.unique().tolist() == [0, 1, 2]


def test_the_model_learns_the_honest_ones_classes_unless_it_sends_noise():
    test = squares(60, (0, 1), seed=9)
    right = []
    for null in (False, True):
        run = active_run(Spy(), null=null)
        parameters = run.public.model_parameters(run.transcript[2].tensors)
        right.append((run.public.forward(parameters, test.inputs).argmax(1) == test.labels).float().mean().item())
    assert right[0] > 0.95
    assert right[1] < 0.8


def test_same_seed_same_run():
    one, same, other = (active_run(Analytic(), rounds=1, seed=seed).transcript[1].tensors for seed in (0, 0, 1))
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not torch.equal(one["head.weight"], other["head.weight"])


@pytest.mark.parametrize("wants_keys", [True, False])
def test_the_attacker_is_told_the_keys_of_the_others_only_if_it_may_know_them(wants_keys):
    run = active_run(Spy(wants_keys=wants_keys), defence=ClassKeys(dimensions=16), rounds=1)
    told = run.locals[ATTACKER].memory["known"]
    assert set(told) == ({"keys client-0 0", "keys client-0 1"} if wants_keys else set())
    for name, key in told.items():
        assert torch.equal(key, run.locals[VICTIM].memory["defence"]["keys"][int(name[-1])])
    assert "known" not in run.locals[VICTIM].memory


def test_an_active_attack_that_finds_nothing_does_not_pass():
    with pytest.raises(ConformanceError, match=r"must beat chance on an undefended toy. Its recognised is 0"):
        check_attack(Spy())


def test_an_active_attack_that_needs_no_training_to_succeed_does_not_pass():
    with pytest.raises(
        ConformanceError, match=r"must be at chance where there is nothing to find. Its recognised is 1"
    ):
        check_attack(Spy(image="light"))


def test_an_attack_that_speaks_of_a_message_nobody_saw_does_not_pass():
    class Elsewhere(Spy):
        kind: Literal["test_elsewhere"] = "test_elsewhere"

        def run(self, view, rng):
            inputs = torch.zeros(20, *SQUARES)
            return GuessedSamples((("client-7", 0),), inputs, 0, inputs[None], (0,))

    with pytest.raises(ConformanceError, match="must guess about the messages in view"):
        check_attack(Elsewhere())


def test_an_attack_that_does_not_claim_samples_does_not_pass():
    class Silent(Spy):
        kind: Literal["test_mute"] = "test_mute"
        claims: ClassVar[frozenset[str]] = frozenset({"labels"})

    with pytest.raises(ConformanceError, match="must say in `claims` what its GuessedSamples speaks of"):
        check_attack(Silent())


def test_the_gan_attack_finds_its_memory_again_when_the_run_is_observed():
    attack = GanAttack(generator={"noise": 4, "width": 2}, generator_steps=1, fakes=4, samples=4, batch_size=4)
    run = active_run(attack, rounds=2)
    assert sorted(map(int, run.locals[ATTACKER].memory["gan"]["history"])) == [0, 1, 2]
