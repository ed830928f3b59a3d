"""Terms: what else an attacker minimises, one number for a candidate, or one for each of a victim's."""

import dataclasses
from typing import Literal

import pytest
import torch

from leaktight.attacks import Consensus, GradientMatching, SearchGuardedLBFGS
from leaktight.attacks.hypotheses import guess_hypotheses
from leaktight.attacks.search_engine import SearchEngine
from leaktight.attacks.term import Candidate, GroupTerm, Term
from leaktight.core.errors import InvalidValue
from leaktight.core.message import Kind
from leaktight.core.random import stream
from leaktight.core.threat import Knows, ThreatModel
from leaktight.defences import GaussianNoise

EVERYTHING = ThreatModel(knows=frozenset(Knows))


class Dark(Term):
    """A plugin's term: believe that pixels are dark."""

    kind: Literal["test_dark"] = "test_dark"
    weight: float = 1.0

    def __call__(self, candidate):
        return self.weight * candidate.inputs.square().sum()


class Counted(Term):
    """A plugin's term: the brightness of the examples was sent along, in a buffer."""

    kind: Literal["test_counted"] = "test_counted"

    def __call__(self, candidate):
        (message,) = candidate.evidence
        assert message.parameters.keys() >= message.sent.keys()
        return 1e6 * (candidate.inputs.mean() - message.buffers["brightness"]).square()


def attack(*terms, iterations=60, **settings):
    return GradientMatching(
        distance="likelihood",
        descent=SearchGuardedLBFGS(),
        iterations=iterations,
        labels="given",
        terms=terms,
        **settings,
    )


def test_a_plugin_s_term_is_added_to_the_objective_and_pulls_the_answer(observe):
    view = EVERYTHING.view(observe(victims=2, defence=GaussianNoise(std=0.1)))
    plain, dark = (each(view, stream(0)) for each in (attack(), attack(Dark(weight=10.0))))
    sizes = [sum(inputs.square().sum() for inputs in guess.inputs) for guess in (plain, dark)]
    assert sizes[1] < 0.9 * sizes[0]
    assert (dark.objective > plain.objective).all()


def test_a_term_can_use_buffers_that_were_sent_along(observe):
    run = observe(victims=2, defence=GaussianNoise(std=3.0))
    wanted = torch.tensor([0.2, 0.7])
    bright = iter(wanted)
    transcript = tuple(
        dataclasses.replace(m, tensors={**m.tensors, "brightness": next(bright)}) if m.kind is Kind.GRADIENT else m
        for m in run.transcript
    )
    view = EVERYTHING.view(dataclasses.replace(run, transcript=transcript))
    plain, told = (each(view, stream(0)) for each in (attack(), attack(Counted())))
    means = [torch.stack([inputs.mean() for inputs in guess.inputs]) for guess in (plain, told)]
    assert (means[0] - wanted).abs().max() > 0.05
    assert torch.allclose(means[1], wanted, atol=0.01)
    truth = [run.truth(key) for key in told.keys]
    assert (told.judge(truth) > plain.judge(truth)).all()


def test_a_term_survives_being_written_down():
    whole = attack(Dark(weight=3.0), Consensus(weight=0.5))
    assert GradientMatching.model_validate(whole.to_dict()) == whole
    assert "test_dark" in str(whole.to_dict())


def test_a_group_term_says_nothing_about_one_candidate():
    candidate = Candidate(torch.ones(2, 1, 3, 3), torch.ones(2, 4), {})
    assert issubclass(Consensus, GroupTerm)
    assert Consensus(weight=5.0)(candidate) == 0


def test_consensus_is_the_distance_from_the_mean_of_a_victim_s_candidates():
    inputs = torch.randn(5, 2, 3, generator=torch.Generator().manual_seed(0))
    owners = torch.tensor([1, 0, 1, 0, 1])
    found = Consensus(weight=2.0).compare(inputs, owners)
    for row, owner in enumerate(owners):
        mean = inputs[owners == owner].mean(0)
        assert found[row].item() == pytest.approx(2 * (inputs[row] - mean).square().mean().item(), rel=1e-5)


def test_the_mean_is_taken_for_fixed():
    inputs, owners = torch.tensor([[[0.0]], [[2.0]]]), torch.tensor([0, 0])
    slope = torch.func.grad(lambda x: Consensus(weight=1.0).compare(x, owners).sum())(inputs)
    assert slope.flatten().tolist() == [-2.0, 2.0]


def test_candidates_that_must_agree_end_closer_together(observe):
    run = observe(victims=2, defence=GaussianNoise(std=0.3))
    view = EVERYTHING.view(run)
    spreads = []
    for plan in (attack(restarts=4, iterations=20), attack(Consensus(weight=1e4), restarts=4, iterations=20)):
        [(_, victims)] = plan.cases(view, view.exchanges(), stream(0))
        objective = plan.objective(victims, view)
        seen = []
        problem = objective.problem(guess_hypotheses(victims, 4, stream(0)))
        engine = SearchEngine(problem, plan.search(4), lambda now, owners, points, seen=seen: seen.append(points))
        engine.run(plan.starts(objective, 4, stream(0)), 2)
        spreads.append(objective.layout.unpack(seen[-1])["examples"].view(2, 4, -1).std(1).mean())
    assert spreads[1] < 0.5 * spreads[0]


def test_a_weight_must_be_above_zero():
    with pytest.raises(InvalidValue, match="weight"):
        Consensus(weight=0.0)
