import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from scipy.stats import binomtest

from leaktight.core.attack import Scores
from leaktight.core.random import stream
from leaktight.core.task import Batch
from leaktight.metrics.labels import LabelDistance, chance_distance, constant_distance, label_distance, likeliest
from leaktight.statistics.interval import wilson

classes = st.lists(st.integers(0, 4), min_size=1, max_size=8)


@settings(deadline=None, max_examples=60)
@given(classes, classes)
def test_distance_is_that_of_the_best_one_to_one_matching(guess, truth):
    guess, truth = torch.tensor(guess), torch.tensor(truth)
    ours = label_distance(guess, truth)
    counted = guess[: len(truth)]
    cost = (counted[None, :] != truth[:, None]).double().numpy()
    rows, columns = linear_sum_assignment(cost)
    assert ours.sum().item() == cost[rows, columns].sum() + len(truth) - len(counted)
    assert set(ours.tolist()) <= {0.0, 1.0}


def test_repeated_labels_are_hit_as_often_as_they_are_guessed():
    assert label_distance(torch.tensor([2, 2, 5]), torch.tensor([2, 2, 2])).tolist() == [0, 0, 1]
    assert label_distance(torch.tensor([2, 2, 2]), torch.tensor([2, 5, 7])).tolist() == [0, 1, 1]
    assert label_distance(torch.tensor([1, 2]), torch.tensor([2])).tolist() == [1]
    assert label_distance(torch.tensor([], dtype=torch.long), torch.tensor([2, 3])).tolist() == [1, 1]


@pytest.mark.parametrize("truth", [[0], [0, 1], [3, 3, 3, 3], [0, 1, 1, 2, 4, 4, 4, 4], list(range(5)) * 4])
def test_chance_agrees_with_drawing_labels_at_random(truth):
    truth, rng = torch.tensor(truth), torch.Generator().manual_seed(0)
    drawn = torch.randint(5, (4000, len(truth)), generator=rng)
    distances = torch.stack([label_distance(guess, truth).mean() for guess in drawn])
    error = distances.std().item() / 4000**0.5
    assert chance_distance(truth, 5) == pytest.approx(distances.mean().item(), abs=4 * error)


@pytest.mark.parametrize("count", [2, 10, 1000])
def test_chance_of_a_single_label_has_its_closed_form(count):
    assert chance_distance(torch.tensor([1]), count) == pytest.approx(1 - 1 / count)


def test_labels_are_graded_message_by_message(ground_truths, reconstruction):
    inputs = [torch.zeros(3, 4), torch.zeros(1, 4)]
    truth = ground_truths(inputs, labels=[torch.tensor([1, 2, 2]), torch.tensor([7])], classes=10)
    guess = reconstruction(inputs, labels=[torch.tensor([2, 1, 7]), torch.tensor([7])])
    raw, used = LabelDistance().grade(guess, truth, stream(0))
    assert (raw.against, used.against) == ("raw", "used")
    for reading in (raw, used):
        assert reading.each == (0, 0, 1, 0)
        assert (reading.value, reading.n, reading.leaks) == (0.25, 4, "low")
        blind = 3 * chance_distance(torch.tensor([1, 2, 2]), 10) + 0.9
        assert reading.chance == pytest.approx(blind / 4)
        expected = wilson(0.25 * 2, 2)
        assert (reading.low, reading.high) == pytest.approx(expected)


def test_a_few_hits_in_a_row_are_not_certainty(ground_truths, reconstruction):
    """Four of four may be luck: resampling four hits would give an interval without width."""
    inputs, labels = [torch.zeros(1, 4)] * 4, [torch.tensor([label]) for label in (3, 1, 4, 1)]
    reading, _ = LabelDistance().grade(
        reconstruction(inputs, labels=labels), ground_truths(inputs, labels=labels), stream(0)
    )
    assert reading.value == 0
    expected = binomtest(0, 4).proportion_ci(method="wilson")
    assert (reading.low, reading.high) == pytest.approx((expected.low, expected.high), abs=1e-12)
    binary, _ = LabelDistance().grade(
        reconstruction(inputs[:3], labels=labels[:3]),
        ground_truths(inputs[:3], labels=labels[:3], classes=2),
        stream(0),
    )
    assert not binary.beats_chance()


def test_labels_of_one_message_are_not_counted_as_independent(ground_truths, reconstruction):
    inputs, labels = [torch.zeros(8, 4)] * 2, [torch.arange(8)] * 2
    reading, _ = LabelDistance().grade(
        reconstruction(inputs, labels=labels), ground_truths(inputs, labels=labels), stream(0)
    )
    assert (reading.low, reading.high) == pytest.approx(wilson(0, 2))


shares = st.lists(st.integers(0, 6), min_size=2, max_size=4).filter(sum)


@settings(deadline=None, max_examples=30)
@given(shares, st.integers(1, 4))
def test_the_likeliest_labels_hit_most_of_all_answers(weights, n):
    frequencies = torch.tensor(weights) / sum(weights)

    def hits(answer):
        draws = itertools.product(range(len(weights)), repeat=n)
        chances = [(draw, math.prod(frequencies[label].item() for label in draw)) for draw in draws]
        return sum(
            chance * (n - label_distance(torch.tensor(answer), torch.tensor(draw)).sum().item())
            for draw, chance in chances
        )

    answers = itertools.combinations_with_replacement(range(len(weights)), n)
    assert hits(likeliest(frequencies, n).tolist()) == pytest.approx(max(map(hits, answers)), abs=1e-6)


def test_even_classes_are_dealt_out_evenly():
    assert likeliest(torch.full((4,), 0.25), 8).bincount().tolist() == [2, 2, 2, 2]
    assert likeliest(torch.tensor([0.0, 1.0]), 3).tolist() == [1, 1, 1]


def test_knowing_the_commonest_class_is_no_leak(ground_truths, reconstruction):
    """Where nine of ten labels are alike, naming that class each time beats uniform guesses and has seen nothing, public data or not."""
    inputs = [torch.zeros(1, 4)] * 40
    truth = ground_truths(inputs, labels=[torch.tensor([0 if number % 10 else 1]) for number in range(40)], classes=2)
    guess = reconstruction(inputs, labels=[torch.tensor([0])] * 40)
    public = Batch(torch.zeros(100, 4), (torch.arange(100) % 10 == 0).long())
    for known in (None, public):
        reading, _ = LabelDistance().grade(guess, truth, stream(0), known)
        assert reading.chance == pytest.approx(0.1)
        assert not reading.beats_chance()
    right, _ = LabelDistance().grade(reconstruction(inputs, labels=[one.raw.labels for one in truth]), truth, stream(0))
    assert right.beats_chance()


multisets = st.lists(st.lists(st.integers(0, 2), min_size=3, max_size=3), min_size=2, max_size=5)


@settings(deadline=None, max_examples=40)
@given(multisets)
def test_the_constant_answer_is_the_best_of_all(messages):
    """By brute force over every answer of three labels."""
    labels = [torch.tensor(each) for each in messages]
    answers = (torch.tensor(answer) for answer in itertools.combinations_with_replacement(range(3), 3))
    best = min(torch.cat([label_distance(answer, each) for each in labels]).mean().item() for answer in answers)
    assert constant_distance(labels, 3) == pytest.approx(best)


def test_the_constant_answer_is_one_for_each_size_and_none_for_a_single_message():
    one, two = torch.tensor([4]), torch.tensor([1, 2])
    assert constant_distance([one, one, two, two], 10) == 0
    assert constant_distance([two], 10) == chance_distance(two, 10)
    assert constant_distance([one, two, two], 10) == pytest.approx(0.9 / 5)


def test_public_labels_that_mislead_leave_the_constant_answer(ground_truths, reconstruction):
    inputs, labels = [torch.zeros(1, 4)] * 6, [torch.tensor([label]) for label in (1, 2, 3, 3, 2, 1)]
    public = Batch(torch.zeros(5, 4), torch.zeros(5, dtype=torch.long))
    reading, _ = LabelDistance().grade(
        reconstruction(inputs, labels=labels), ground_truths(inputs, labels=labels, classes=4), stream(0), public
    )
    assert reading.chance == pytest.approx(2 / 3)


def test_soft_labels_count_as_their_largest_entry(ground_truths, reconstruction):
    inputs = [torch.zeros(2, 4)]
    truth = ground_truths(inputs, labels=[torch.tensor([1, 0])], classes=2)
    soft = torch.tensor([[0.9, 0.1], [0.2, 0.8]])
    assert LabelDistance().grade(reconstruction(inputs, labels=[soft]), truth, stream(0))[1].value == 0


def test_wrong_labels_do_not_beat_chance(ground_truths, reconstruction):
    inputs = [torch.zeros(1, 4)] * 20
    truth = ground_truths(inputs, labels=[torch.tensor([1])] * 20, classes=2)
    reading, _ = LabelDistance().grade(reconstruction(inputs, labels=[torch.tensor([0])] * 20), truth, stream(0))
    assert reading.value == 1
    assert not reading.beats_chance()


def test_a_guess_without_labels_is_not_graded(ground_truths, reconstruction):
    inputs = [torch.zeros(1, 4)]
    assert LabelDistance().grade(reconstruction(inputs), ground_truths(inputs), stream(0)) == ()
    assert LabelDistance().grade(Scores((("client-0", 0),), (torch.zeros(1),)), ground_truths(inputs), stream(0)) == ()


def test_grading_leaves_labels_as_they_are(ground_truths, reconstruction):
    inputs, labels = [torch.zeros(2, 4)], [torch.tensor([3, 1])]
    truth = ground_truths(inputs, labels=[torch.tensor([1, 1])])
    LabelDistance().grade(reconstruction(inputs, labels=labels), truth, stream(0))
    assert labels[0].tolist() == [3, 1]
    assert truth[0].used.labels.tolist() == [1, 1]
