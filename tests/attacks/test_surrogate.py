"""Surrogate labels on a real split training: found without a label, beside the same search on rows dealt out by chance."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from leaktight.attacks import Surrogate
from leaktight.core.defence import Undefended
from leaktight.core.errors import Refusal
from leaktight.core.message import Kind
from leaktight.core.probe import Attempt
from leaktight.core.random import stream
from leaktight.core.scenario import Observation
from leaktight.core.threat import ThreatModel
from leaktight.data import RareDigit
from leaktight.defences import SumKL
from leaktight.learning import Adam, Split
from leaktight.metrics import LeakAUC, LeakAUCPasses
from leaktight.models import MLP
from leaktight.testing import check_attack

THREAT = ThreatModel(seat="feature-party", knows=frozenset())
ATTACK = Surrogate(iterations=30, share=0.1)
METRICS = (LeakAUC(), LeakAUCPasses())
SPLIT = Split(
    data=RareDigit(),
    model=MLP(hidden=(16, 8, 8), activation="relu"),
    cut="relu2",
    passes=4,
    batch_size=128,
    optimiser=Adam(),
)


def played(defence):
    training = SPLIT.train(defence, 0)
    return SPLIT.observe(training, defence, Observation("training", 128, SPLIT.messages, 0))


@pytest.fixture(scope="module")
def run():
    return played(Undefended())


def readings(run, attack=ATTACK):
    found = Attempt(attack=attack, threat=THREAT, metrics=METRICS).read(run, stream(0)).readings
    return {reading.name: reading for reading in found}


def test_the_attack_conforms(run):
    check_attack(ATTACK, run, (LeakAUC(),), seat="feature-party")


def test_labels_are_found_that_features_do_not_tell(run):
    found = readings(run)
    assert found["leak_auc_passes"].value > 0.9
    assert found["leak_auc_passes"].low > found["leak_auc_features"].high
    assert found["leak_auc_passes"].chance >= found["leak_auc_features"].value


def test_passes_add_up_under_a_defence():
    found = readings(played(SumKL(bound=0.3)))["leak_auc_passes"]
    assert found.each[-1] > found.each[0]


def test_more_iterations_match_better(run):
    one, many = (readings(run, ATTACK.model_copy(update={"iterations": count}))["leak_auc"].value for count in (1, 30))
    assert many > one


def test_the_wire_sees_both_messages_but_not_the_rows(run):
    wire = ThreatModel(seat="wire", knows=frozenset()).view(run)
    guess = ATTACK(wire, stream(0))
    assert guess.passes is None
    assert len(guess.values) == SPLIT.messages


def test_without_activations_or_with_more_classes_it_refuses(run):
    view = THREAT.view(run)
    alone = dataclasses.replace(view, messages=view.of(Kind.CUT_GRADIENT))
    with pytest.raises(Refusal, match="surrogate needs cut gradients of somebody else and the activations"):
        ATTACK(alone, stream(0))
    many = dataclasses.replace(view, task=dataclasses.replace(view.task, classes=3))
    with pytest.raises(Refusal, match=r"surrogate tells two classes apart. Got 3"):
        ATTACK(many, stream(0))


def test_the_scale_of_messages_does_not_matter(run):
    view = THREAT.view(run)
    some = dataclasses.replace(view, messages=view.messages[:4])
    tiny = dataclasses.replace(
        some,
        messages=tuple(m.map(lambda t: t * 1e-20) if m.kind is Kind.CUT_GRADIENT else m for m in some.messages),
    )
    one, other = (ATTACK(each, stream(0)).values[0] for each in (some, tiny))
    assert torch.allclose(one, other, atol=1e-3)


def test_messages_of_zeros_say_nothing(run):
    view = THREAT.view(run)
    zeros = dataclasses.replace(view, messages=tuple(message.map(torch.zeros_like) for message in view.messages[:4]))
    assert all(torch.isfinite(scores).all() for scores in ATTACK(zeros, stream(0)).values)
