"""Property AUC: against scikit-learn, layer by layer; what it refuses; and the promises of every metric."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from sklearn.metrics import roc_auc_score

from leaktight.core.attack import PropertyScores, Scores
from leaktight.core.errors import InvalidValue, Refusal
from leaktight.core.random import stream
from leaktight.metrics import PropertyAuc, standard
from leaktight.metrics.property_auc import has_property
from leaktight.statistics.auc import delong
from leaktight.testing.metrics import Trial, check_metric


def scored(values, layers=(None,)):
    values = torch.as_tensor(values, dtype=torch.float64)
    return PropertyScores(tuple(("client-0", number) for number in range(values.shape[1])), values, layers)


@pytest.fixture
def truth(ground_truths):
    """Return a maker of truths: for each message whether its examples have the property."""

    def make(properties):
        found = ground_truths([torch.zeros(len(each), 2) for each in properties])
        return tuple(
            dataclasses.replace(ground_truth, raw=dataclasses.replace(ground_truth.raw, properties=torch.tensor(each)))
            for ground_truth, each in zip(found, properties, strict=True)
        )

    return make


def grade(guess, truth):
    return [one for one in graded(guess, truth) if one.name == "property_auc"]


def graded(guess, truth):
    return PropertyAuc().grade(guess, truth, stream(0, "metric"))


def draw_scores(messages=60, layers=3, gap=0.3, seed=0):
    rng = torch.Generator().manual_seed(seed)
    positive = torch.rand(messages, generator=rng) < 0.4
    values = torch.rand(layers, messages, generator=rng) * 0.7 + gap * positive
    return values, [[int(each), 0] for each in positive], positive


def test_each_layer_is_that_of_scikit_learn_with_its_interval(truth):
    values, properties, positive = draw_scores()
    coarse = (values * 10).round() / 10
    layers = (None, "body.0", "head")
    readings = grade(scored(coarse, layers), truth(properties))
    assert [reading.layer for reading in readings] == list(layers)
    for row, reading in zip(coarse, readings, strict=True):
        assert reading.value == pytest.approx(roc_auc_score(positive, row))
        assert (reading.low, reading.high) == delong(row, positive)[1]
        assert (reading.name, reading.n, reading.chance) == ("property_auc", 60, 0.5)
        assert (reading.leaks, reading.against, reading.each) == ("high", "raw", ())


def test_one_example_is_enough_for_a_message_to_have_the_property(truth):
    readings = grade(scored([[0.9, 0.8, 0.1, 0.2]]), truth([[0, 0, 1], [1, 1, 1], [0, 0, 0], [0]]))
    assert [reading.value for reading in readings] == [1.0]
    assert has_property(truth([[0, 1], [0, 0]])).tolist() == [True, False]


def test_the_raw_examples_count_not_the_used_ones(truth):
    found = truth([[1], [0]])
    exchanged = tuple(
        dataclasses.replace(ground_truth, used=other.raw)
        for ground_truth, other in zip(found, reversed(found), strict=True)
    )
    assert grade(scored([[0.9, 0.1]]), exchanged)[0].value == 1


def test_a_wrong_order_is_below_a_half_and_leaks_nothing(truth):
    values, properties, _ = draw_scores()
    one, other = (grade(scored(each[:1]), truth(properties))[0] for each in (values, 1 - values))
    assert other.value == pytest.approx(1 - one.value)
    assert one.beats_chance()
    assert not other.beats_chance()


@pytest.mark.parametrize(("properties", "word"), [([[1], [1, 0]], "All of 2"), ([[0], [0, 0]], "None of 2")])
def test_messages_of_one_kind_are_refused(properties, word, truth):
    with pytest.raises(Refusal, match=f"property_auc needs messages with the property and without. {word} has it"):
        grade(scored([[0.1, 0.2]]), truth(properties))


def test_data_without_a_property_is_refused(ground_truths):
    with pytest.raises(Refusal, match="The data has none; set `private_property` of the data"):
        grade(scored([[0.1, 0.2]]), ground_truths([torch.zeros(1, 2), torch.zeros(1, 2)]))


def test_another_guess_and_an_empty_one_get_no_reading(truth):
    assert graded(Scores((("client-0", 0),), (torch.zeros(1),)), truth([[1]])) == ()
    assert graded(scored(torch.zeros(1, 0)), ()) == ()


def test_as_many_scores_as_messages_are_needed(truth):
    with pytest.raises(InvalidValue, match=r"one score for each of 2 examples. Got 3"):
        grade(scored([[0.1, 0.2, 0.3]]), truth([[1], [0]]))


def test_it_is_one_of_the_standard_metrics():
    assert PropertyAuc() in standard()


def test_the_metric_conforms(truth):
    _, properties, positive = draw_scores(messages=400)
    sure = torch.where(positive, 0.9, 0.1)[None].double()
    noise = torch.rand(1, 400, generator=torch.Generator().manual_seed(5)).double()
    perfect = scored(sure)
    check_metric(
        PropertyAuc(),
        Trial(
            truth=truth(properties),
            perfect=perfect,
            blind=scored(torch.full((1, 400), 0.4)),
            wrong=scored(noise),
            shuffled=perfect,
            other=Scores(perfect.keys, tuple(torch.zeros(1) for _ in perfect.keys)),
        ),
    )


def test_layers_are_compared_with_the_best_on_the_same_messages(truth):
    values, properties, positive = draw_scores(layers=3)
    values[2] = values[1] - 0.2 * positive  # what makes both wrong is the same
    found = [one for one in graded(scored(values, (None, "body", "head")), truth(properties)) if "behind" in one.name]
    [behind] = found
    assert behind.layer == "head"
    aucs = [roc_auc_score(positive, row) for row in values]
    assert behind.value == pytest.approx(aucs[1] - aucs[2])
    assert behind.low > 0
    _, (low, high) = delong(values[2], positive)
    assert behind.high - behind.low < high - low
