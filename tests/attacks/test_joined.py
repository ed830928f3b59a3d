"""Several messages about the same examples are several terms of one search."""

import pytest
import torch

from leaktight.attacks import GradientMatching, SearchGuardedLBFGS
from leaktight.attacks.hypotheses import guess_hypotheses
from leaktight.attacks.objective import surprise
from leaktight.core.random import stream
from leaktight.core.threat import Knows, ThreatModel
from leaktight.defences import GaussianNoise, Transformation
from leaktight.defences.polarization import Polarization

EVERYTHING = ThreatModel(knows=frozenset(Knows))
EACH = GradientMatching(distance="likelihood", descent=SearchGuardedLBFGS(), iterations=80, labels="given")
JOINED = EACH.model_copy(update={"messages": "joined"})


def errors(guess, run) -> torch.Tensor:
    pairs = zip(guess.keys, guess.inputs, strict=True)
    return torch.stack([(inputs - run.truths[key].raw.inputs).square().mean() for key, inputs in pairs])


def test_four_noisy_messages_tell_four_times_as_much_as_one(observe):
    run = observe(victims=6, rounds=4, defence=GaussianNoise(std=0.01))
    view = EVERYTHING.view(run)
    one, four = (errors(attack(view, stream(0)), run) for attack in (EACH, JOINED))
    # The error of an estimate from n independent messages is 1/n of that from one, as far as the law is narrow.
    assert four.mean().item() == pytest.approx(one.mean().item() / 4, rel=0.4)


def test_every_message_about_the_same_examples_gets_the_one_answer(observe):
    run = observe(victims=2, rounds=2, defence=GaussianNoise(std=0.01))
    guess = JOINED(EVERYTHING.view(run), stream(0))
    found = dict(zip(guess.keys, guess.inputs, strict=True))
    for name in ("client-0", "client-1"):
        assert torch.equal(found[name, 0], found[name, 1])
    assert not torch.equal(found["client-0", 0], found["client-1", 0])


def test_a_secret_is_searched_once_for_all_messages_of_its_sender(observe):
    run = observe(victims=2, rounds=3, defence=Polarization(bits=8, alpha2=0.3))
    view = EVERYTHING.view(run)
    [(places, victims)] = JOINED.cases(view, view.exchanges(), stream(0))
    assert places == [(0, 1, 2), (3, 4, 5)]
    assert len(victims.sightings) == 3
    assert {len(tensor) for tensor in victims.secrets.values()} == {2}
    [(_, apart)] = EACH.cases(view, view.exchanges(), stream(0))
    assert {len(tensor) for tensor in apart.secrets.values()} == {6}


def test_batches_that_may_differ_are_searched_apart(observe):
    run = observe(victims=1, batch=1, steps=2, rounds=2)
    view = EVERYTHING.view(run)
    [(places, _)] = JOINED.cases(view, view.exchanges(), stream(0))
    assert places == [(0,), (1,)]


def test_all_messages_are_heard_where_outcomes_are_never_revised(observe):
    run = observe(victims=2, rounds=3, shape=(3, 8, 8), defence=Transformation(policy="3-1-7"))
    view = EVERYTHING.view(run)
    [(_, victims)] = JOINED.cases(view, view.exchanges(), stream(0))
    assert bool((guess_hypotheses(victims, 16, stream(0)).heard == 1).all())
    assert bool((guess_hypotheses(victims, 16, stream(0), revised=True).heard.sum(1) == 1).all())
    # One phase: the objective that is answered is that of all three messages, each of which has some hundred terms.
    answer = JOINED.model_copy(update={"iterations": 5})(view, stream(0))
    each = EACH.model_copy(update={"iterations": 5})(view, stream(0))
    assert answer.objective is not None
    assert each.objective is not None
    assert bool((answer.objective.view(2, 3)[:, 0] > each.objective.view(2, 3).amax(1)).all())


def test_an_outcome_that_lasts_is_chosen_once_for_all_messages(observe):
    defence = Transformation(policy="0+15", draw="once")
    run = observe(victims=2, rounds=3, shape=(3, 8, 8), defence=defence)
    used = [run.truths["client-0", number].used.inputs for number in range(3)]
    assert torch.equal(used[0], used[1])
    view = EVERYTHING.view(run)
    [(_, victims)] = JOINED.cases(view, view.exchanges(), stream(0))
    hypotheses = guess_hypotheses(victims, 3, stream(0), revised=True)
    assert bool((hypotheses.heard == 1).all())
    objective = JOINED.objective(victims, view)
    problem = objective.problem(hypotheses)
    points, owners = JOINED.starts(objective, 3, stream(0)), torch.arange(2).repeat_interleave(3)
    assert problem.revise is not None
    revised = problem.revise(points, owners, problem.rows)
    for choices in (problem.rows, revised):
        assert torch.equal(choices["choice 0"], choices["choice 1"])
        assert torch.equal(choices["choice 0"], choices["choice 2"])
    # One draw costs its surprise once, not once for each message.
    assert surprise(victims.replay, problem.rows["choice 0"][0]) > 0
    assert surprise(victims.replay, problem.rows["choice 0"][0], 1) == 0
