"""Key cosine: the nearest true key counts, over the turns, beside what a random direction has."""

from __future__ import annotations

import dataclasses

import pytest
import torch
import torch.nn.functional as F

from leaktight.attacks import GanAttack
from leaktight.core.attack import GuessedSamples, Scores
from leaktight.core.draws import public_draws
from leaktight.core.probe import Attempt
from leaktight.core.random import stream
from leaktight.core.threat import ThreatModel
from leaktight.defences import ClassKeys
from leaktight.defences.key_theory import key_at_distance, random_keys
from leaktight.metrics.key_cosine import KeyCosine, fisher_interval
from leaktight.testing.metrics import Trial, check_metric
from leaktight.testing.seats import ATTACKER, active_run

DIMENSIONS = 512
PLACE = (("all but client-1", 4),)
SECRET = random_keys(3, DIMENSIONS, public_draws(0, "true"))


def guess(estimates):
    images = torch.zeros(2, 1, 4, 4)
    return GuessedSamples(PLACE, images, 0, images[None], (0,), estimates)


def random(seed, count=2):
    return torch.randn(count, DIMENSIONS, generator=stream(seed))


@pytest.fixture
def truth(ground_truths):
    [ground_truth] = ground_truths([torch.zeros(2, 1, 4, 4)])
    return (
        dataclasses.replace(ground_truth, revealed={f"client-0/0-class_keys/{n}": key for n, key in enumerate(SECRET)}),
    )


def read(estimates, truth):
    (reading,) = KeyCosine().grade(guess(estimates), truth, stream(0))
    return reading


def test_it_keeps_the_promises_of_every_metric(truth):
    perfect = guess(SECRET[1:2] * 3.0)
    check_metric(
        KeyCosine(),
        Trial(truth, perfect, guess(random(1)), guess(random(2)), perfect, Scores(PLACE, (torch.zeros(1),))),
    )


def test_the_nearest_key_of_the_last_turn_is_followed_over_all(truth):
    near, nearer = (key_at_distance(SECRET[2], distance, public_draws(3, distance)) for distance in (1.2, 0.8))
    reading = read(torch.stack([SECRET[0], near, 5 * nearer]), truth)
    assert reading.value == pytest.approx(1 - 0.8**2 / 2, abs=1e-5)
    assert reading.each == pytest.approx((float(SECRET[0] @ SECRET[2]), 1 - 1.2**2 / 2, 1 - 0.8**2 / 2), abs=1e-5)
    assert (reading.n, reading.leaks) == (3, "high")


def test_a_key_s_opposite_is_of_no_use(truth):
    assert read(-SECRET[:1], truth).value < 0.2


def test_random_directions_are_at_chance_and_rarely_beyond_their_interval(truth):
    readings = [read(random(seed, 1), truth) for seed in range(200)]
    assert sum(reading.value > reading.chance for reading in readings) == pytest.approx(100, abs=30)
    assert sum(reading.beats_chance() for reading in readings) <= 6


def test_the_interval_covers_the_cosine_of_keys_in_more_dimensions():
    """With 512 random dimensions of a pair whose cosine is a half, 19 of 20 intervals hold a half."""
    rng, held = stream(0), 0
    for _ in range(200):
        one, other = torch.randn(2, DIMENSIONS, generator=rng)
        mixed = 0.5 * one + 0.75**0.5 * other
        low, high = fisher_interval(float(F.cosine_similarity(one, mixed, dim=0)), DIMENSIONS)
        held += low <= 0.5 <= high
    assert held == pytest.approx(190, abs=10)


def test_without_estimates_or_keys_there_is_no_reading(truth, ground_truths):
    assert KeyCosine().grade(guess(None), truth, stream(0)) == ()
    assert KeyCosine().grade(guess(random(0)), ground_truths([torch.zeros(2, 1, 4, 4)]), stream(0)) == ()


def test_who_estimates_keys_is_told_how_near_it_came():
    attack = GanAttack(generator={"noise": 16, "width": 4}, generator_steps=20, batch_size=32, fakes=50, samples=10)
    run = active_run(attack, defence=ClassKeys(dimensions=DIMENSIONS, fixed=False))
    trial = Attempt(attack=attack, threat=ThreatModel(seat=ATTACKER), metrics=(KeyCosine(),))
    [reading] = trial.read(run, stream(0)).readings
    assert reading.beats_chance()
    assert len(reading.each) > 5
    null = active_run(attack, defence=ClassKeys(dimensions=DIMENSIONS, fixed=False), null=True)
    [nothing] = trial.read(null, stream(0)).readings
    assert reading.value > nothing.value
    assert not nothing.beats_chance()
