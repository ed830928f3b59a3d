"""The feature party: closed against nonsense from its peer, and what it sends is defended, in training and when rows are scored."""

from __future__ import annotations

import copy

import pytest
import torch

from leaktight.core.defence import Chain
from leaktight.core.errors import InvalidValue
from leaktight.core.local import Local
from leaktight.core.message import Kind, Message
from leaktight.defences import GaussianNoise
from leaktight.learning import Adam, BatchOrder, FeatureParty


def gradient_for(feature: FeatureParty, value=0.01, rows=None, width=None, step=None) -> Message:
    message = feature.respond(Message(Kind.CUT_GRADIENT, "label-party", "feature-party", feature.step - 1, {}))
    shape = list(message.tensors["activations"].shape)
    shape[0], shape[1] = rows or shape[0], width or shape[1]
    step = feature.step if step is None else step
    return Message(Kind.CUT_GRADIENT, "label-party", "feature-party", step, {"gradient": torch.full(shape, value)})


def test_a_state_of_another_model_is_refused_and_changes_nothing(tables, same):
    feature, _ = tables("numbers").parties()
    other, _ = tables("image").parties()
    before = copy.deepcopy(feature.state())
    with pytest.raises(InvalidValue, match="The checkpoint must hold the parameters of this model"):
        feature.restore(other.state())
    assert same(feature.state()["model"], before["model"])


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"value": float("nan")}, "in 16 of 16 rows"),
        ({"rows": 5}, "must have 16 rows, one for each example of the batch. Got 5"),
        ({"width": 2}, r"must have rows of shape \(9,\). Got \(2,\)"),
        ({"step": 7}, "feature-party awaits the gradient of step 0. Got that of step 7 instead"),
    ],
)
def test_nonsense_from_the_label_party_changes_nothing(tables, same, settings, sentence):
    feature, _ = tables("numbers").parties(Adam())
    message = gradient_for(feature, **settings)
    before = feature.state()
    with pytest.raises(InvalidValue, match=sentence):
        feature.respond(message)
    assert same(before["model"], feature.state()["model"])
    assert feature.step == 0
    feature.respond(gradient_for(feature))
    assert feature.step == 1


def test_the_feature_party_may_defend_its_activations(tables):
    table = tables("numbers")
    made = copy.deepcopy(table.made)
    noisy = FeatureParty(
        made.bottom,
        table.features,
        BatchOrder(len(table.labels), 16, 0),
        Local("feature-party", 0),
        defence=GaussianNoise(std=1.0),
    )
    opening = Message(Kind.CUT_GRADIENT, "label-party", "feature-party", -1, {})
    sent = noisy.respond(opening).tensors["activations"]
    noise = sent - noisy._activations.detach()
    assert 0.8 < noise.std() < 1.2
    assert torch.equal(noisy.respond(opening).tensors["activations"], sent)
    assert (noisy.local.batch.labels == -1).all()


def test_rows_to_be_scored_are_defended_too_and_leave_no_trace(tables, counting):
    table = tables("numbers")
    feature, _ = table.parties()
    plain = feature.features(table.features)
    with torch.no_grad():
        assert torch.allclose(plain, feature.bottom(table.features), atol=1e-6)
    feature.defence = Chain(links=(counting(), GaussianNoise(std=0.5)))
    noise = feature.features(table.features) - plain
    assert 0.48 < noise.std() < 0.52
    assert not torch.equal(noise[:16], noise[16:32])
    assert torch.equal(feature.features(table.features) - plain, noise)
    assert (feature.local.memory, feature.local.notes) == ({}, {})
    trained = feature.respond(Message(Kind.CUT_GRADIENT, "label-party", "feature-party", -1, {}))
    sent = trained.tensors["activations"] - feature._activations.detach()
    assert not torch.allclose(sent, noise[:16], atol=1e-3)
