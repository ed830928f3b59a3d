"""Leak AUC: against scikit-learn, step by step; what is left out; chance levels; and the promises of every metric."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from leaktight.core.attack import GuessedLabels, LabelScores, Scores
from leaktight.core.errors import InvalidValue, Refusal
from leaktight.core.random import stream
from leaktight.metrics import LeakAUC, standard
from leaktight.metrics.leak_auc import _step, quantile_interval
from leaktight.metrics.null_auc import null_quantile
from leaktight.testing.metrics import Trial, check_metric


def keys(count):
    return tuple(("label-party", step) for step in range(count))


def scored(values, layers=(None,), signed=True, blind=()):
    return LabelScores(keys(len(values)), tuple(values), layers, signed, tuple(blind))


@pytest.fixture
def truth(ground_truths):
    def make(labels):
        return ground_truths([torch.zeros(len(each), 2) for each in labels], labels=labels, classes=2)

    return make


def steps(count=20, size=128, share=0.2, seed=0):
    rng = torch.Generator().manual_seed(seed)
    labels = [(torch.rand(size, generator=rng) < share).long() for _ in range(count)]
    return labels, [torch.randn(size, generator=rng) + each for each in labels]


def grade(guess, truth):
    return LeakAUC().grade(guess, truth, stream(0, "metric"))


def test_every_step_is_that_of_scikit_learn(truth):
    labels, scores = steps()
    coarse = [(each * 2).round() for each in scores]
    median, tail = grade(scored([each[None] for each in coarse]), truth(labels))
    wanted = torch.tensor([roc_auc_score(y, s) for y, s in zip(labels, coarse, strict=True)], dtype=torch.float64)
    assert median.each == pytest.approx(wanted.tolist(), abs=1e-12)
    assert median.value == pytest.approx(wanted.quantile(0.5).item())
    assert tail.value == pytest.approx(wanted.quantile(0.95).item())
    assert (median.name, tail.name, median.n, tail.n) == ("leak_auc", "leak_auc_q95", 20, 20)
    assert (median.against, median.layer, median.leaks, tail.each) == ("raw", None, "high", ())
    assert median.low <= median.value <= median.high <= tail.high


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(-2, 2)), min_size=0, max_size=30))
def test_ties_count_half_whatever_the_scores(pairs):
    labels = torch.tensor([0, 1, *(label for label, _ in pairs)])
    scores = torch.tensor([0.0, 0.0, *(score for _, score in pairs)]).double() * 1e-200
    value, sizes = _step(scores, labels.bool())
    assert value == pytest.approx(roc_auc_score(labels, scores * 1e200), abs=1e-12)
    assert sizes == (int(labels.sum()), int((1 - labels).sum()))


def test_examples_without_a_score_do_not_count(truth):
    labels, scores = steps()
    hinted = [each.clone() for each in scores]
    for each in hinted:
        each[:30] = torch.nan
    with_holes = grade(scored([each[None] for each in hinted]), truth(labels))
    shorter = grade(scored([each[None, 30:] for each in scores]), truth([each[30:] for each in labels]))
    assert with_holes == shorter


def test_steps_of_one_class_are_left_out(truth):
    labels, scores = steps(4)
    labels[1], labels[2] = torch.zeros_like(labels[1]), torch.ones_like(labels[2])
    # The only positives of this one are hinted.
    scores[3][labels[3] == 1] = torch.nan
    median, tail = grade(scored([each[None] for each in scores]), truth(labels))
    assert (median.n, tail.n, len(median.each)) == (1, 1, 1)
    assert (median.low, median.high) == (None, None)
    assert not median.beats_chance()


def test_if_no_step_is_left_it_refuses(truth):
    labels, scores = [torch.zeros(5, dtype=torch.long)] * 3, [torch.rand(1, 5)] * 3
    with pytest.raises(Refusal, match=r"scored examples of both classes. Got none in 3; use larger batches"):
        grade(scored(scores), truth(labels))


def test_a_score_for_each_example_is_needed(truth):
    with pytest.raises(InvalidValue, match=r"one score for each of 4 examples. Got shape \(3,\) instead"):
        grade(scored([torch.rand(1, 3)]), truth([torch.tensor([0, 1, 0, 1])]))


def test_where_the_sign_is_unknown_either_way_counts(truth):
    labels, scores = steps()
    turned = [each if step % 2 else -each for step, each in enumerate(scores)]
    straight = grade(scored([each[None] for each in scores]), truth(labels))
    folded = grade(scored([each[None] for each in turned], signed=False), truth(labels))
    assert folded[0].each == pytest.approx(straight[0].each)
    assert straight[0].chance == 0.5
    sizes = [(int(each.sum()), int((1 - each).sum())) for each in labels]
    assert folded[0].chance == null_quantile(sizes, 0.5, signed=False) > 0.52
    assert folded[1].chance == null_quantile(sizes, 0.95, signed=False) > straight[1].chance


@pytest.mark.parametrize("signed", [True, False])
def test_random_scores_are_at_chance(signed, truth):
    labels, _ = steps(200, 200, seed=1)
    random = [torch.rand(1, 200, generator=torch.Generator().manual_seed(step)) for step in range(200)]
    for reading in grade(scored(random, signed=signed), truth(labels)):
        assert reading.value == pytest.approx(reading.chance, abs=0.02)
        assert reading.low <= reading.chance <= reading.high


def test_each_layer_has_readings_of_its_own(truth):
    labels, scores = steps()
    rows = [torch.stack([each, -each, torch.zeros_like(each)]) for each in scores]
    found = grade(scored(rows, layers=(None, "linear1", "relu1")), truth(labels))
    assert [(reading.name, reading.layer) for reading in found[::2]] == [
        ("leak_auc", None),
        ("leak_auc", "linear1"),
        ("leak_auc", "relu1"),
    ]
    assert (found[4].value, found[4].low, found[4].high) == (0.5, 0.5, 0.5)


def test_before_the_cut_an_order_turned_round_tells_as_much(truth):
    labels, scores = steps()
    rows = [torch.stack([-each, -each]) for each in scores]
    at_cut, _, before, tail = grade(scored(rows, layers=(None, "linear1")), truth(labels))
    straight, _ = grade(scored([each[None] for each in scores]), truth(labels))
    assert at_cut.value == pytest.approx(1 - straight.value)
    assert before.each == pytest.approx(straight.each)
    assert not at_cut.beats_chance()
    assert before.beats_chance()
    sizes = [(int(each.sum()), int((1 - each).sum())) for each in labels]
    assert before.chance == null_quantile(sizes, 0.5, signed=False)
    assert tail.chance == null_quantile(sizes, 0.95, signed=False)


def test_what_a_blind_attack_reaches_before_the_cut_is_the_chance_level_there(truth):
    labels, scores = steps()
    rows = [torch.stack([each, each]) for each in scores]
    known = [torch.stack([each, each]) + 0.0 for each in steps(seed=0)[1]]
    found = grade(scored(rows, layers=(None, "linear1"), blind=known), truth(labels))
    assert found[0].chance == 0.5
    assert found[2].chance == found[2].value > 0.6
    assert found[3].chance == found[3].value
    assert found[0].beats_chance()
    assert not found[2].beats_chance()
    turned = grade(scored(rows, layers=(None, "linear1"), blind=[-each for each in known]), truth(labels))
    assert turned[2].chance == pytest.approx(found[2].chance)
    # A blind attack that reaches nothing is no reason to ask for less than guessing.
    nothing = grade(
        scored(rows, layers=(None, "linear1"), blind=[torch.zeros_like(each) for each in known]), truth(labels)
    )
    assert nothing[2].chance > 0.52


def test_labels_that_a_defence_changed_do_not_count(truth):
    labels, scores = steps()
    flipped = truth([1 - each for each in labels])
    changed = [
        dataclasses.replace(ground_truth, used=other.used)
        for ground_truth, other in zip(truth(labels), flipped, strict=True)
    ]
    guess = scored([each[None] for each in scores])
    assert grade(guess, changed) == grade(guess, truth(labels))


def test_it_is_silent_about_any_other_guess(truth):
    labels, scores = steps(2)
    assert grade(Scores(keys(2), tuple(scores)), truth(labels)) == ()
    assert grade(GuessedLabels(keys(2), tuple(labels)), truth(labels)) == ()
    assert grade(scored([]), ()) == ()
    assert LeakAUC() in standard()


def test_it_keeps_the_promises_of_every_metric(truth):
    # Large enough batches that the 95 % quantile of 48 steps is known to a tenth of the way to 1.
    labels, _ = steps(48, 512)
    rng = torch.Generator().manual_seed(5)
    perfect = scored([each[None].double() for each in labels])
    trial = Trial(
        truth=truth(labels),
        perfect=perfect,
        blind=scored([torch.zeros(1, 512) for _ in labels]),
        wrong=scored([torch.rand(1, 512, generator=rng) for _ in labels]),
        # A score belongs to its example, so there is no other order; but only the order of scores counts.
        shuffled=scored([torch.exp(3 * each[None].double()) - 7 for each in labels]),
        other=GuessedLabels(keys(48), tuple(labels)),
    )
    check_metric(LeakAUC(), trial)


def test_the_interval_covers_the_true_quantile_about_as_often_as_it_says():
    rng = torch.Generator().manual_seed(2)
    inside = 0
    for number in range(200):
        low, high = quantile_interval(torch.rand(40, generator=rng), 0.5, stream(number))
        inside += low <= 0.5 <= high
    assert 178 <= inside <= 199


def test_many_steps_are_resampled_in_parts(monkeypatch):
    values = torch.rand(50, generator=torch.Generator().manual_seed(3))
    whole = quantile_interval(values, 0.95, stream(0))
    monkeypatch.setattr("leaktight.metrics.leak_auc._DRAWS", 50 * 300)
    assert quantile_interval(values, 0.95, stream(0)) == whole
