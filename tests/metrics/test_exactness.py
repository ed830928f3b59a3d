"""Exact answers are counted, and certified ones that are wrong."""

import dataclasses

import pytest
import torch

from leaktight.core.attack import Reconstruction, Scores
from leaktight.core.random import stream
from leaktight.metrics import ExactShare, FalseAnswers, standard
from leaktight.metrics.exactness import is_matched
from leaktight.testing.metrics import check_metric, reconstruction_trial


@pytest.fixture(scope="module")
def trial():
    return reconstruction_trial(messages=6)


def grade(metric, guess, trial):
    return {(reading.name, reading.against): reading for reading in metric.grade(guess, trial.truth, stream(0))}


def changed(trial, change, certified=True):
    """Return the perfect guess with its inputs changed, all of it certified or nothing."""
    inputs = tuple(change(one) for one in trial.perfect.inputs)
    return Reconstruction(
        trial.perfect.keys, inputs, certified=tuple(torch.full((len(one),), certified) for one in inputs)
    )


def test_brute_force_agrees():
    generator = torch.Generator().manual_seed(0)
    examples, others = (
        torch.rand(20, 1, 2, 2, generator=generator) * 0.05,
        torch.rand(8, 1, 2, 2, generator=generator) * 0.05,
    )
    expected = [any(bool((one - other).abs().max() < 0.01) for other in others) for one in examples]
    assert is_matched(examples, others).tolist() == expected
    assert 0 < sum(expected) < 20


def test_one_pixel_decides(trial):
    def off(by):
        def change(inputs):
            moved = inputs.clone()
            moved[0].view(-1)[0] += by
            return moved

        return change

    share = {by: grade(ExactShare(), changed(trial, off(by)), trial)["exact_share", "raw"] for by in (0.009, 0.011)}
    assert [round(reading.value, 4) for reading in share.values()] == [1.0, round(2 / 3, 4)]
    assert share[0.011].n == 18
    assert share[0.011].chance == 0


def test_an_example_found_twice_stands_for_itself_alone(trial):
    doubled = changed(trial, lambda inputs: inputs[[0, 0, 1]])
    assert grade(ExactShare(), doubled, trial)["exact_share", "raw"].value == pytest.approx(2 / 3)
    assert grade(FalseAnswers(), doubled, trial)["false_answers", None].value == 0


def test_answers_beyond_the_number_of_examples_do_not_count(trial):
    many = changed(trial, lambda inputs: torch.cat([torch.zeros_like(inputs), inputs]))
    assert grade(ExactShare(), many, trial)["exact_share", "raw"].value == 0


def test_only_certified_answers_can_be_false(trial):
    wrong, unsure = (changed(trial, lambda inputs: inputs + 0.5, certified) for certified in (True, False))
    reading = grade(FalseAnswers(), wrong, trial)["false_answers", None]
    assert (reading.value, reading.n, reading.leaks, reading.chance) == (3.0, 6, None, None)
    assert grade(FalseAnswers(), unsure, trial)["false_answers", None].value == 0


def test_an_answer_as_it_was_used_is_not_false(trial):
    truth = tuple(
        dataclasses.replace(one, used=dataclasses.replace(one.used, inputs=one.used.inputs.flip(-1)))
        for one in trial.truth
    )
    flipped = changed(trial, lambda inputs: inputs.flip(-1))
    assert FalseAnswers().grade(flipped, truth, stream(0))[0].value == 0
    raw, used = ExactShare().grade(flipped, truth, stream(0))
    assert (raw.value, used.value) == (0.0, 1.0)


@pytest.mark.parametrize("metric", [ExactShare(), FalseAnswers()], ids=str)
def test_attacks_that_certify_nothing_get_no_reading(metric, trial):
    assert metric in standard()
    bare = dataclasses.replace(trial.perfect, certified=None)
    assert metric.grade(bare, trial.truth, stream(0)) == ()
    assert metric.grade(Scores(trial.perfect.keys, ()), trial.truth, stream(0)) == ()
    check_metric(metric)
