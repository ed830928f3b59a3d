"""One number for every guess, whoever made it: the truth is not beaten by a blank, and only what is exact explains a message."""

import dataclasses
import math

import pytest
import torch

from leaktight.attacks.common_model import CommonModel, model_of
from leaktight.core.message import Kind
from leaktight.core.random import stream
from leaktight.core.threat import Knows, ThreatModel
from leaktight.defences import GaussianNoise, Polarization, Pruning, TopK, Transformation
from leaktight.priors import Generic

KNOWS = ThreatModel(knows=frozenset({Knows.DEFENCE, Knows.LOCAL_STEPS}))
DEFENCES = [None, GaussianNoise(std=0.001), TopK(share=0.3), Pruning(rate=0.5), Polarization(alpha2=1.0)]


@pytest.fixture
def judged(observe):
    """Return a function that gives a run and the common model of what its server sees."""

    def build(defence=None, threat=KNOWS, **settings):
        run = observe(victims=2, defence=defence, **settings)
        return run, model_of(threat.view(run), Generic(), stream(0))

    return build


def truth_of(run, model):
    truths = [run.truth(exchange.sent.key) for exchange in model.exchanges]
    return [one.raw.inputs for one in truths], [one.raw.labels for one in truths], truths


@pytest.mark.parametrize("defence", DEFENCES, ids=str)
@pytest.mark.parametrize("batch", [1, 2])
def test_the_truth_scores_better_than_a_blank(judged, defence, batch):
    run, model = judged(defence, batch=batch)
    inputs, labels, _ = truth_of(run, model)
    blank = [torch.full_like(one, 0.5) for one in inputs]
    assert (model.score(inputs, labels) < model.score(blank, labels)).all()


def test_the_score_of_the_truth_is_what_metrics_are_told(judged):
    run, model = judged(GaussianNoise(std=0.001))
    inputs, labels, truths = truth_of(run, model)
    assert torch.allclose(model.score(inputs, labels).double(), model.at_truth(truths).double(), rtol=1e-4)


def test_a_short_search_for_secrets_says_nothing_about_the_truth(judged):
    run, model = judged(Polarization(alpha2=1.0))
    assert model.at_truth(truth_of(run, model)[2]).isnan().all()


def test_only_what_gives_every_entry_explains_a_message(judged):
    run, model = judged()
    inputs, labels, _ = truth_of(run, model)
    assert model.explains(inputs, labels) == [True, True]
    assert model.explains([inputs[0], inputs[0]], labels) == [True, False]
    assert model.explains([None, inputs[1] + 0.01], labels) == [False, False]


@pytest.mark.parametrize("defence", [GaussianNoise(std=0.001), Polarization(), Transformation(policy="3-1-7")], ids=str)
def test_nothing_is_explained_where_something_is_random_or_secret(judged, defence):
    shape = (3, 16, 16) if isinstance(defence, Transformation) else (1, 6, 6)
    run, model = judged(defence, shape=shape)
    inputs, labels, _ = truth_of(run, model)
    assert not any(model.explains(inputs, labels))


def test_what_cannot_be_a_guess_has_no_score(judged):
    run, model = judged(batch=2)
    inputs, labels, _ = truth_of(run, model)
    scores = model.score([None, inputs[1][:1]], labels)
    assert scores.tolist() == [math.inf, math.inf]


def test_labels_that_nobody_guessed_are_read_off_the_message(judged):
    run, model = judged()
    inputs, labels, _ = truth_of(run, model)
    unknown = [None, torch.tensor([-1])]
    assert torch.allclose(model.score(inputs, unknown), model.score(inputs, labels), rtol=1e-4)


def test_who_does_not_know_the_defence_takes_it_for_none(judged):
    run, model = judged(GaussianNoise(std=0.1), ThreatModel())
    inputs, labels, _ = truth_of(run, model)
    assert (
        model.score(inputs, labels) > CommonModel(KNOWS.view(run), Generic(), stream(0)).score(inputs, labels)
    ).all()


def test_there_is_none_where_a_message_cannot_be_replayed(judged):
    run, _ = judged(steps=2, shares=Kind.UPDATE)
    view = KNOWS.view(run)
    hidden = tuple(
        dataclasses.replace(m, facts={"examples": m.facts["examples"]}) if m.facts else m for m in view.messages
    )
    assert model_of(dataclasses.replace(view, messages=hidden), Generic(), stream(0)) is None
