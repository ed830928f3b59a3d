"""The objective at the truth: the attack's own, whatever it knows, and lower than anywhere else."""

import dataclasses
import math

import pytest
import torch

from leaktight.attacks import GradientMatching, SearchGuardedLBFGS
from leaktight.attacks.objective import surprise
from leaktight.attacks.truth import objective_at_truth
from leaktight.core.channel import Channel, Outcome
from leaktight.core.random import stream
from leaktight.core.threat import Knows, ThreatModel
from leaktight.defences import GaussianNoise, Transformation
from leaktight.defences.polarization import Polarization

EVERYTHING = ThreatModel(knows=frozenset(Knows))
KNOWING = GradientMatching(distance="likelihood", descent=SearchGuardedLBFGS(), iterations=5, labels="given")
SPN = Polarization(bits=8, alpha2=0.5)


def at_truth(attack, run) -> list[float]:
    """The objective at the truth of each victim."""
    view = EVERYTHING.view(run)
    [(places, victims)] = attack.cases(view, view.exchanges(), stream(0))
    objective, insides = attack.objective(victims, view), list(run.inside.values())
    return [objective_at_truth(objective, row, [insides[place] for place in about]) for row, about in enumerate(places)]


def test_an_attack_that_knows_no_private_task_is_judged_without_it(observe):
    run = observe(defence=SPN)
    plain = GradientMatching(distance="l2", iterations=5, labels="given")
    assert min(at_truth(plain, run)) > 0.01
    assert max(at_truth(plain, observe())) < 1e-6


@pytest.mark.parametrize("loss", ["known", "free"])
def test_the_truth_of_a_private_loss_fits_with_the_parameters_that_were_sent(observe, loss):
    """The model's own weights are others by the time that an attack is judged."""
    run = observe(defence=SPN)
    before = at_truth(KNOWING.model_copy(update={"loss": loss}), run)
    with torch.no_grad():
        for parameter in run.public.model.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=stream(1)))
    after = at_truth(KNOWING.model_copy(update={"loss": loss}), run)
    assert after == pytest.approx(before, rel=1e-3)
    assert max(after) < 100.0


def test_batches_that_come_in_another_order_each_round_are_compared_in_their_own(observe):
    run = observe(victims=1, batch=3, rounds=4, shape=(3, 8, 8), defence=Transformation(policy="3-1-7"))
    first, *others = (inside.raw.inputs for inside in run.inside.values())
    assert not all(torch.equal(first, other) for other in others)
    together = at_truth(KNOWING.model_copy(update={"messages": "joined"}), run)
    apart = at_truth(KNOWING, run)
    assert together[0] < 1.1 * sum(apart)


def test_less_likely_outcomes_cost_more(observe):
    view = EVERYTHING.view(observe(victims=1))
    [(_, victims)] = KNOWING.cases(view, view.exchanges(), stream(0))
    outcomes = tuple(Outcome(weight, lambda images: images, "same") for weight in (0.75, 0.25))
    replay = dataclasses.replace(victims.replay, channel=Channel(outcomes=outcomes))
    choice = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    assert float(surprise(replay, choice)) == pytest.approx(-math.log(0.75) - 2 * math.log(0.25))
    assert surprise(replay, None) == 0.0


def test_noise_is_in_the_truth_s_objective(observe):
    """Half a squared normal number for each entry, and the logarithm of its spread."""
    run = observe(victims=8, defence=GaussianNoise(std=0.1))
    [(_, victims)] = KNOWING.cases(EVERYTHING.view(run), EVERYTHING.view(run).exchanges(), stream(0))
    entries = sum(tensor[0].numel() for tensor in victims.sightings[0].wanted.values())
    values = torch.tensor(at_truth(KNOWING, run))
    spread = values.std().item()
    # Three standard deviations of a spread that is measured on eight.
    assert spread == pytest.approx((entries / 2) ** 0.5, rel=0.8)
