import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from leaktight.core.attack import Scores
from leaktight.core.random import stream
from leaktight.metrics.labels import LabelDistance, chance_distance, label_distance

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


def test_labels_are_graded_message_by_message(insides, reconstruction):
    inputs = [torch.zeros(3, 4), torch.zeros(1, 4)]
    truth = insides(inputs, labels=[torch.tensor([1, 2, 2]), torch.tensor([7])], classes=10)
    guess = reconstruction(inputs, labels=[torch.tensor([2, 1, 7]), torch.tensor([7])])
    raw, used = LabelDistance().grade(guess, truth, stream(0))
    assert (raw.against, used.against) == ("raw", "used")
    for reading in (raw, used):
        assert reading.each == (0, 0, 1, 0)
        assert (reading.value, reading.n, reading.leaks) == (0.25, 4, "low")
        blind = 3 * chance_distance(torch.tensor([1, 2, 2]), 10) + 0.9
        assert reading.chance == pytest.approx(blind / 4)
        assert reading.beats_chance()
        assert reading.low == 0
        assert reading.high == pytest.approx(1 / 3)


def test_soft_labels_count_as_their_largest_entry(insides, reconstruction):
    inputs = [torch.zeros(2, 4)]
    truth = insides(inputs, labels=[torch.tensor([1, 0])], classes=2)
    soft = torch.tensor([[0.9, 0.1], [0.2, 0.8]])
    assert LabelDistance().grade(reconstruction(inputs, labels=[soft]), truth, stream(0))[1].value == 0


def test_wrong_labels_do_not_beat_chance(insides, reconstruction):
    inputs = [torch.zeros(1, 4)] * 20
    truth = insides(inputs, labels=[torch.tensor([1])] * 20, classes=2)
    reading, _ = LabelDistance().grade(reconstruction(inputs, labels=[torch.tensor([0])] * 20), truth, stream(0))
    assert reading.value == 1
    assert not reading.beats_chance()


def test_a_guess_without_labels_is_not_graded(insides, reconstruction):
    inputs = [torch.zeros(1, 4)]
    assert LabelDistance().grade(reconstruction(inputs), insides(inputs), stream(0)) == ()
    assert LabelDistance().grade(Scores((("client-0", 0),), (torch.zeros(1),)), insides(inputs), stream(0)) == ()


def test_grading_leaves_labels_as_they_are(insides, reconstruction):
    inputs, labels = [torch.zeros(2, 4)], [torch.tensor([3, 1])]
    truth = insides(inputs, labels=[torch.tensor([1, 1])])
    LabelDistance().grade(reconstruction(inputs, labels=labels), truth, stream(0))
    assert labels[0].tolist() == [3, 1]
    assert truth[0].used.labels.tolist() == [1, 1]
