"""Generated: each number against one that is computed another way, what is refused, and the promises of every metric."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist, pdist

from leaktight.core.attack import GuessedSamples, Scores
from leaktight.core.errors import Refusal
from leaktight.core.random import stream
from leaktight.core.task import Batch
from leaktight.metrics import (
    MeanPicture,
    NearestAny,
    NearestPrivate,
    Recognised,
    RecognisedAny,
    RecognisedBest,
    RecognisedConfidence,
    RecognisedMedian,
    SampleDiversity,
    standard,
)
from leaktight.metrics.recogniser import recogniser
from leaktight.statistics.interval import wilson
from leaktight.testing.metrics import Trial, check_form, check_metric, check_order, check_silence
from leaktight.testing.seats import squares

KEYS = (("all but client-1", 4),)
PUBLIC = squares(90, seed=1)


def samples(inputs, label=0):
    return GuessedSamples(KEYS, inputs, label, inputs[None, :2], (0,))


@pytest.fixture
def truth(ground_truths):
    """The examples of class 0 and 1 of one party."""
    held = squares(60, (0, 1), seed=2)
    return ground_truths([held.inputs], labels=[held.labels])


def private(truth, label=0):
    return truth[0].raw.inputs[truth[0].raw.labels == label]


def graded(metric, inputs, truth, label=0, public=PUBLIC):
    (reading,) = metric.grade(samples(inputs, label), truth, stream(0, "metric"), public)
    assert (reading.name, reading.leaks, reading.n, reading.against) == (metric.kind, metric.leaks, len(inputs), "raw")
    return reading


@pytest.fixture
def trial(truth):
    noise = torch.rand(40, 1, 8, 8, generator=stream(0, "noise"))
    return Trial(
        truth=truth,
        perfect=samples(private(truth)),
        blind=samples(squares(90, seed=3).inputs),
        wrong=samples(noise),
        shuffled=samples(private(truth).flip(0)),
        other=Scores(KEYS, (torch.zeros(1),)),
        public=PUBLIC,
    )


@pytest.mark.parametrize("metric", [Recognised(), RecognisedAny(), RecognisedConfidence()])
def test_metrics_of_leakage_keep_the_promises(metric, trial):
    check_metric(metric, trial)


def test_nearness_keeps_the_promises(trial):
    check_metric(NearestPrivate(), dataclasses.replace(trial, blind=samples(squares(60, (0,), seed=4).inputs)))


def test_nearness_to_any_class_keeps_the_promises(trial):
    check_metric(NearestAny(), dataclasses.replace(trial, blind=samples(squares(60, (0, 1), seed=4).inputs)))


def test_the_distance_by_the_mean_picture_keeps_the_promises(trial):
    mean = PUBLIC.inputs[PUBLIC.labels == 0].mean(0, keepdim=True)
    check_metric(MeanPicture(), dataclasses.replace(trial, blind=samples(mean.expand(40, -1, -1, -1))))


@pytest.mark.parametrize("metric", [RecognisedMedian(), RecognisedBest()])
def test_rounds_keep_the_promises_that_are_not_about_leakage(metric, trial):
    for check in (check_order, check_silence):
        check(metric, trial)


def test_of_all_rounds_the_median_and_the_best_count(truth):
    rounds = torch.stack([squares(4, (label,), seed=5).inputs for label in (1, 0, 2, 0, 0)])
    rounds[1, :2] = squares(2, (1,), seed=6).inputs
    guess = GuessedSamples(KEYS, rounds[0], 0, rounds, tuple(range(5)))
    median, best = (
        metric.grade(guess, truth, stream(0), PUBLIC)[0] for metric in (RecognisedMedian(), RecognisedBest())
    )
    assert median.each == best.each == (0.0, 0.5, 0.0, 1.0, 1.0)
    assert (median.value, best.value) == (0.5, 1.0)
    assert not best.beats_chance()


@pytest.mark.parametrize(("metric", "label", "level"), [(Recognised(), 0, 0.8), (RecognisedAny(), 0, 0.9)])
def test_what_a_random_key_brings_out_is_the_chance_level_where_it_is_more(metric, label, level, truth):
    controls = torch.stack(
        [
            torch.cat([squares(count, (each,), seed=5).inputs for each, count in counts.items()])
            for counts in ({0: 8, 1: 1, 2: 1}, {0: 2, 1: 1, 2: 7})
        ]
    )
    guess = dataclasses.replace(samples(squares(10, (0,), seed=6).inputs, label), controls=controls)
    (reading,) = metric.grade(guess, truth, stream(0), PUBLIC)
    assert reading.value == 1
    assert reading.chance == pytest.approx(level)
    less = dataclasses.replace(guess, controls=torch.zeros(1, 10, 1, 8, 8))
    (plain,) = metric.grade(less, truth, stream(0), PUBLIC)
    assert plain.chance == graded(metric, guess.inputs, truth).chance


def test_nearness_to_any_class_looks_at_all_that_the_attacked_hold(truth):
    others = private(truth, label=1)
    assert graded(NearestAny(), others, truth).value == 0
    assert graded(NearestPrivate(), others, truth).value > 0.4
    foreign = squares(30, (2,), seed=9).inputs
    assert graded(NearestAny(), foreign, truth).value == pytest.approx(0.5, abs=0.1)


def test_the_distance_is_relative_to_that_of_the_mean_of_public_pictures(truth):
    inputs = squares(25, (0,), seed=6).inputs
    mean = PUBLIC.inputs[PUBLIC.labels == 0].double().mean(0, keepdim=True)
    near, level = (
        cdist(np.asarray(images.double().flatten(1)), np.asarray(private(truth).double().flatten(1))).min(1)
        for images in (inputs, mean)
    )
    reading = graded(MeanPicture(), inputs, truth)
    assert reading.value == pytest.approx((near / level).mean())
    assert reading.chance == 1
    assert not reading.beats_chance()
    assert graded(MeanPicture(), mean.float().expand(20, -1, -1, -1), truth).value == pytest.approx(1)


def test_diversity_keeps_the_promises_that_are_not_about_leakage(trial):
    for check in (check_form, check_order, check_silence):
        check(SampleDiversity(), trial)


def test_all_are_among_the_standard_metrics_and_silent_about_other_guesses(truth):
    mine = [metric for metric in standard() if metric.claim == "samples"]
    assert [metric.kind for metric in mine] == [
        *("recognised", "recognised_any", "recognised_confidence", "recognised_median", "recognised_best"),
        *("nearest_private", "nearest_any", "mean_picture", "sample_diversity", "key_cosine"),
    ]
    for metric in mine:
        assert metric.grade(Scores(KEYS, (torch.zeros(1),)), truth, stream(0), PUBLIC) == ()
        assert metric.grade(samples(torch.zeros(4, 12)), truth, stream(0), PUBLIC) == ()


def test_the_share_is_that_of_the_classifier_with_wilsons_interval(truth):
    inputs = torch.cat(
        [
            squares(30, (0,), seed=5).inputs,
            squares(10, (1,), seed=5).inputs,
            torch.rand(10, 1, 8, 8, generator=stream(0)),
        ]
    )
    chosen = recogniser(PUBLIC).probabilities(inputs).argmax(1)
    assert chosen.bincount(minlength=4).tolist() == [30, 10, 0, 10]
    reading = graded(Recognised(), inputs, truth)
    assert reading.value == pytest.approx(0.6)
    assert (reading.low, reading.high) == wilson(30, 50)
    assert reading.chance == pytest.approx(1 / 3)
    assert reading.each == tuple((chosen == 0).double().tolist())
    assert graded(Recognised(), inputs, truth, label=1).value == pytest.approx(0.2)


def test_any_class_of_the_attacked_counts_and_neither_another_one_nor_nothing(truth):
    inputs = torch.cat(
        [
            *(squares(count, (label,), seed=5).inputs for label, count in ((0, 5), (1, 20), (2, 15))),
            torch.rand(10, 1, 8, 8, generator=stream(0)),
        ]
    )
    reading = graded(RecognisedAny(), inputs, truth)
    assert reading.value == pytest.approx(25 / 50)
    assert (reading.low, reading.high) == wilson(25, 50)
    assert reading.chance == pytest.approx(2 / 3)
    # What the party owns counts, and not the batch behind its message.
    owned = tuple(dataclasses.replace(ground_truth, owned=squares(6, (0,))) for ground_truth in truth)
    assert graded(RecognisedAny(), inputs, owned).value == pytest.approx(5 / 50)


def test_confidence_is_the_mean_probability(truth):
    inputs = torch.cat([squares(20, (0,), seed=5).inputs, 0.5 * squares(20, (2,), seed=5).inputs])
    expected = recogniser(PUBLIC).probabilities(inputs)[:, 0].double().mean().item()
    reading = graded(RecognisedConfidence(), inputs, truth)
    assert reading.value == pytest.approx(expected)
    assert reading.low < reading.value < reading.high


def test_nearness_is_the_mean_share_of_nearest_distances(truth):
    inputs = squares(25, (0,), seed=6).inputs
    others = PUBLIC.inputs[PUBLIC.labels == 0]
    assert len(others) == len(private(truth)) == 30
    rows, near, far = (np.asarray(images.double().flatten(1)) for images in (inputs, private(truth), others))
    a, b = cdist(rows, near).min(1), cdist(rows, far).min(1)
    reading = graded(NearestPrivate(), inputs, truth)
    assert reading.value == pytest.approx((a / (a + b)).mean())
    assert reading.low < 0.5 < reading.high
    assert reading.chance == 0.5


def test_nearness_tells_a_generator_that_learned_private_examples_by_heart(truth):
    wobbly = (private(truth) + 0.02 * torch.randn(private(truth).shape, generator=stream(0))).clamp(0, 1)
    assert graded(NearestPrivate(), wobbly, truth).beats_chance()
    assert graded(NearestPrivate(), private(truth), truth).value == 0
    learned = graded(NearestPrivate(), PUBLIC.inputs[PUBLIC.labels == 0], truth)
    assert learned.value == 1
    assert not learned.beats_chance()


def test_an_example_that_is_private_and_public_is_as_near_to_both(ground_truths):
    same = squares(20, (0,))
    reading = graded(NearestPrivate(), same.inputs, ground_truths([same.inputs], labels=[same.labels]), public=same)
    assert reading.value == 0.5


def test_one_picture_many_times_is_no_evidence_that_it_is_nearer(ground_truths):
    """With one sample, half of all deals are nearer to the private side: a narrow interval over copies would call that a leak."""
    beats = 0
    for seed in range(40):
        pool = squares(60, (0,), seed=100 + seed)
        held, public = pool.take(torch.arange(30)), pool.take(torch.arange(30, 60))
        one = squares(1, (0,), seed=200 + seed).inputs.expand(50, -1, -1, -1)
        truth = ground_truths([held.inputs], labels=[held.labels])
        beats += graded(NearestPrivate(), one, truth, public=public).beats_chance()
    assert beats <= 4


def test_what_the_party_owns_counts_if_it_was_written_down(truth):
    inputs = squares(10, (0,), seed=7).inputs
    owned = Batch(inputs.clone(), torch.zeros(10, dtype=torch.long))
    more = tuple(dataclasses.replace(ground_truth, owned=owned) for ground_truth in truth)
    assert graded(NearestPrivate(), inputs, truth).value > 0
    assert graded(NearestPrivate(), inputs, more).value == 0


def test_diversity_is_the_ratio_of_mean_distances_between_pairs(truth):
    inputs = torch.rand(40, 1, 8, 8, generator=stream(0))
    rows, held = (np.asarray(images.double().flatten(1)) for images in (inputs, private(truth)))
    reading = graded(SampleDiversity(), inputs, truth)
    assert reading.value == pytest.approx(pdist(rows).mean() / pdist(held).mean())
    assert reading.chance == 0
    assert not reading.beats_chance()


def test_diversity_of_one_picture_is_none_and_that_of_real_ones_is_one(truth):
    same = graded(SampleDiversity(), private(truth)[:1].expand(20, -1, -1, -1), truth)
    assert (same.value, same.low, same.high) == (0, 0, 0)
    assert graded(SampleDiversity(), squares(40, (0,), seed=8).inputs, truth).value == pytest.approx(1, abs=0.05)


def test_the_interval_of_diversity_covers_what_more_samples_would_show(truth):
    def draw_samples(count, seed):
        scale = torch.rand(count, 1, 1, 1, generator=stream(seed, "scale"))
        return scale * torch.rand(count, 1, 8, 8, generator=stream(seed))

    wanted = graded(SampleDiversity(), draw_samples(1500, 999), truth).value
    readings = [graded(SampleDiversity(), draw_samples(40, seed), truth) for seed in range(60)]
    covered = sum(reading.low <= wanted <= reading.high for reading in readings)
    # 95 % of 60 are 57; the interval is an approximation for many samples.
    assert covered >= 51
    assert all(math.isfinite(reading.high) for reading in readings)


@pytest.mark.parametrize(
    "metric", [Recognised(), RecognisedAny(), RecognisedMedian(), NearestPrivate(), MeanPicture(), SampleDiversity()]
)
@pytest.mark.parametrize("public", [None, Batch(PUBLIC.inputs[PUBLIC.labels > 0], PUBLIC.labels[PUBLIC.labels > 0])])
def test_without_public_examples_of_the_class_they_refuse(metric, public, truth):
    with pytest.raises(Refusal, match=f"{metric.kind} needs public examples of class 0. There are none"):
        metric.grade(samples(private(truth)), truth, stream(0), public)


@pytest.mark.parametrize("metric", [NearestPrivate(), MeanPicture(), SampleDiversity()])
def test_without_private_examples_of_the_class_they_refuse(metric, truth):
    with pytest.raises(
        Refusal, match=f"{metric.kind} needs private examples of class 2. None of the attacked parties holds one"
    ):
        metric.grade(samples(private(truth), label=2), truth, stream(0), PUBLIC)


def test_one_sample_has_no_diversity(truth):
    with pytest.raises(Refusal, match="sample_diversity needs at least 2 samples and 2 private examples of class 0"):
        SampleDiversity().grade(samples(private(truth)[:1]), truth, stream(0), PUBLIC)
