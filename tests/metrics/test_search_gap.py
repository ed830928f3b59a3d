"""Whether a search failed is told by its own objective at the truth, after the attack is over."""

import dataclasses
import math

import pytest
import torch
from torch import nn

from leaktight.attacks import Analytic, GradientMatching, SearchAdam, preset
from leaktight.core.attack import Reconstruction
from leaktight.core.defence import Undefended
from leaktight.core.probe import Attempt
from leaktight.core.random import global_seed, stream
from leaktight.core.scenario import Observation
from leaktight.core.task import Batch, Model
from leaktight.core.threat import Knows, ThreatModel
from leaktight.data import Digits
from leaktight.defences import GaussianNoise
from leaktight.learning.federated import Federated
from leaktight.learning.protocol import FedSGD
from leaktight.learning.task import classification
from leaktight.metrics import SearchGap, standard
from leaktight.metrics.search_gap import OBJECTIVE_OF_GUESS, OBJECTIVE_OF_TRUTH, OUTSIDE, SEARCH_FAILED, SHARE
from leaktight.testing.toys import toy_batch, toy_run, toy_task

SHAPE = (1, 4, 4)
KNOWS = ThreatModel(knows=frozenset({Knows.LOCAL_STEPS, Knows.DEFENCE, Knows.LABELS}))
NEAR = preset("posterior", iterations=150, labels="given")
FAR = GradientMatching(
    distance="l2", iterations=1, initial="randn", descent=SearchAdam(learning_rate=1e-3), labels="given"
)


def linear_task():
    with global_seed(0):
        return classification(Model(nn.Flatten(), nn.Linear(16, 4)), SHAPE, 4)


def dim(count):
    """Images around the middle of the generic prior, so that an answer near that middle is no worse than any blind one."""
    batch = toy_batch(count, shape=SHAPE)
    return Batch(0.66 * batch.inputs, batch.labels)


def run_of(defence=None, task=None, rounds=6):
    return toy_run(defence, rounds=rounds, batch_size=1, task=task or linear_task(), data=dim(rounds))


def attacked(attack, run):
    guess = attack(KNOWS.view(run), stream(0, "attack"))
    return guess, [run.truth(key) for key in guess.keys]


def gap(guess, truth, public=None):
    return {reading.name: reading for reading in SearchGap().grade(guess, truth, stream(0, "grade"), public)}


def test_a_search_that_cannot_miss_does_not_fail():
    readings = gap(*attacked(NEAR, run_of()))
    assert readings[SEARCH_FAILED].each == (0.0,) * 6
    assert readings[SEARCH_FAILED].n == readings[OBJECTIVE_OF_TRUTH].n == 6
    assert readings[SEARCH_FAILED].low == 0 < readings[SEARCH_FAILED].high < 0.5


def test_one_step_from_far_away_fails_and_the_truth_fits_better():
    readings = gap(*attacked(FAR, run_of()))
    assert readings[SEARCH_FAILED].value == 1
    pairs = zip(readings[OBJECTIVE_OF_GUESS].each, readings[OBJECTIVE_OF_TRUTH].each, strict=True)
    assert all(guess > truth for guess, truth in pairs)


def test_where_the_message_tells_nothing_the_search_did_not_fail():
    """Under strong noise something else fits better than the truth: no search can do more."""
    guess, truth = attacked(NEAR, run_of(GaussianNoise(std=10.0)))
    readings = gap(guess, truth)
    assert readings[SEARCH_FAILED].value == 0
    pairs = zip(readings[OBJECTIVE_OF_GUESS].each, readings[OBJECTIVE_OF_TRUTH].each, strict=True)
    assert all(guess < truth for guess, truth in pairs)
    errors = [
        (found - ground_truth.raw.inputs).square().mean()
        for found, ground_truth in zip(guess.inputs, truth, strict=True)
    ]
    assert torch.stack(errors).mean() > 0.01


def test_the_attack_never_sees_the_truth_that_it_is_judged_by():
    run = run_of()
    guess, truth = attacked(NEAR, run)
    before, answer = gap(guess, truth), [inputs.clone() for inputs in guess.inputs]
    others = [
        dataclasses.replace(ground_truth, raw=Batch(1 - ground_truth.raw.inputs, ground_truth.raw.labels))
        for ground_truth in truth
    ]
    after = gap(guess, others)
    assert after[OBJECTIVE_OF_TRUTH].value > before[OBJECTIVE_OF_TRUTH].value
    assert after[OBJECTIVE_OF_GUESS] == before[OBJECTIVE_OF_GUESS]
    changed = dataclasses.replace(run, truths=dict(zip(guess.keys, others, strict=True)))
    again, _ = attacked(NEAR, changed)
    assert all(map(torch.equal, again.inputs, answer))


def judged(ground_truths, inputs, objective, at_truth, at_blank=1.0):
    """A guess whose objectives are chosen; the truth is told from the blank answer by its pixels."""
    truth = ground_truths(
        [torch.rand(1, 1, 8, 8, generator=torch.Generator().manual_seed(n)) for n in range(len(inputs))]
    )

    def judge(asked):
        blank = all((ground_truth.raw.inputs == 0.5).all() for ground_truth in asked)
        return torch.full((len(asked),), at_blank) if blank else torch.tensor(at_truth)

    keys = tuple((f"client-{n}", 0) for n in range(len(inputs)))
    return Reconstruction(keys, tuple(inputs), objective=torch.tensor(objective), judge=judge), truth


def near(count=3):
    """The true images of `judged` themselves."""
    return [torch.rand(1, 1, 8, 8, generator=torch.Generator().manual_seed(n)) for n in range(count)]


@pytest.mark.parametrize(("above", "failed"), [(0.5 * SHARE, 0.0), (2 * SHARE, 1.0), (-0.1, 0.0)])
def test_the_tolerance_is_a_share_of_the_way_from_a_blank_answer(above, failed, ground_truths):
    """In whatever unit: a thousand times the objective changes nothing."""
    for unit in (1.0, 1e3):
        guess, truth = judged(ground_truths, near(), [unit * (0.2 + 0.8 * above)] * 3, [0.2 * unit] * 3, unit)
        assert gap(guess, truth)[SEARCH_FAILED].value == failed


def test_rounding_of_large_objectives_is_no_gap(ground_truths):
    """Where the blank answer fits as well as the truth only rounding is forgiven."""
    guess, truth = judged(ground_truths, near(), [1e6 + 1, 1e6 + 100, 1e6 - 5], [1e6] * 3, 1e6)
    assert gap(guess, truth)[SEARCH_FAILED].each == (0.0, 1.0, 0.0)


def test_a_search_that_diverged_failed_and_has_no_objective(ground_truths):
    guess, truth = judged(ground_truths, near(), [math.inf, math.nan, 0.0], [0.0] * 3)
    readings = gap(guess, truth)
    assert readings[SEARCH_FAILED].each == (1.0, 1.0, 0.0)
    assert (readings[OBJECTIVE_OF_GUESS].n, readings[OBJECTIVE_OF_TRUTH].n) == (1, 1)


def test_pixels_far_outside_the_box_are_a_failure_and_a_stray_one_is_not(ground_truths):
    inputs = near()
    inputs[0] = torch.full((1, 1, 8, 8), 1 + 1.1 * OUTSIDE)
    inputs[1][0, 0, 0, 0] = 1 + 7 * OUTSIDE
    guess, truth = judged(ground_truths, inputs, [0.0] * 3, [0.0] * 3)
    assert gap(guess, truth)[SEARCH_FAILED].each == (1.0, 0.0, 0.0)


def test_guesses_below_the_blind_level_are_failures_however_well_they_fit(ground_truths):
    negatives = [1 - images for images in near(8)]
    guess, truth = judged(ground_truths, negatives, [0.0] * 8, [0.0] * 8)
    assert gap(guess, truth)[SEARCH_FAILED].value == 1
    guess, truth = judged(ground_truths, negatives[:1], [0.0], [0.0])
    assert gap(guess, truth)[SEARCH_FAILED].value == 0, "one message has no interval"


def test_messages_whose_truth_no_candidate_can_be_are_left_out():
    run = run_of(rounds=4)
    guess, truth = attacked(NEAR, run)
    poisson = dataclasses.replace(truth[0], raw=dim(2), used=dim(2))
    sent = dataclasses.replace(truth[1].sent, sender="all but client-9")
    readings = gap(guess, [poisson, dataclasses.replace(truth[1], sent=sent), *truth[2:]])
    assert {name: reading.n for name, reading in readings.items()} == dict.fromkeys(readings, 2)


def test_what_a_participant_can_tell_of_the_others_is_graded_without_a_gap():
    scenario = Federated(data=Digits(), model={"kind": "mlp"}, protocol=FedSGD(), rounds=2, moments=1, participants=3)
    attack = GradientMatching(distance="l2", iterations=2)
    threat = ThreatModel(seat="client-0", knows=frozenset({Knows.LOCAL_STEPS}))
    training = scenario.train(Undefended(), 0)
    run = scenario.observe(training, Undefended(), Observation(stage="training", batch_size=1, victims=3, seed=0))
    found = Attempt(attack=attack, threat=threat, metrics=standard()).read(run, stream(0))
    assert all(sender.startswith("all but") for sender, _ in found.guess.keys)
    names = {reading.name for reading in found.readings}
    assert "psnr" in names
    assert OBJECTIVE_OF_TRUTH not in names


def test_what_was_not_searched_for_has_no_gap(ground_truths):
    run = toy_run(rounds=2, batch_size=1, task=toy_task(shape=SHAPE))
    guess, truth = attacked(Analytic(), run)
    assert gap(guess, truth) == {}
    guess, truth = judged(ground_truths, near(), [0.0] * 3, [0.0] * 3)
    assert gap(dataclasses.replace(guess, judge=None), truth) == {}
    assert gap(dataclasses.replace(guess, objective=None), truth) == {}


def test_every_audit_asks_for_it():
    assert SearchGap() in standard()
    found = Attempt(attack=FAR, threat=KNOWS, metrics=standard()).read(run_of(), stream(0))
    assert {OBJECTIVE_OF_GUESS, OBJECTIVE_OF_TRUTH, SEARCH_FAILED} <= {reading.name for reading in found.readings}
    assert all(reading.leaks is None for reading in found.readings if reading.name == SEARCH_FAILED)
