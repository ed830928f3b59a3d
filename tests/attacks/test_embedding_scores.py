"""Attacks on the feature party's own activations: spectral and completion, beside what the untrained bottom gives."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from leaktight.attacks import Completion, EmbeddingAttack, Spectral
from leaktight.core.defence import Undefended
from leaktight.core.errors import Refusal
from leaktight.core.probe import Attempt
from leaktight.core.random import stream
from leaktight.core.record import Cell
from leaktight.core.scenario import Observation
from leaktight.core.threat import Knows, ThreatModel
from leaktight.data import RareDigit
from leaktight.learning import Adam, Split
from leaktight.metrics import LeakAUC, LeakAUCPasses
from leaktight.models import MLP
from leaktight.plans.control import null_cells
from leaktight.testing.attacks import check_guess, check_needs
from leaktight.testing.values import check_value

SEAT = "feature-party"
THREAT = ThreatModel(seat=SEAT, knows=frozenset({Knows.HINTS}))
METRICS = (LeakAUC(), LeakAUCPasses())
ATTACKS = [Spectral(), Completion(labels=20)]
SPLIT = Split(
    data=RareDigit(),
    model=MLP(hidden=(16, 8), activation="relu"),
    passes=6,
    batch_size=128,
    optimiser=Adam(learning_rate=0.005),
)


@pytest.fixture(scope="module")
def run():
    training = SPLIT.train(Undefended(), 0)
    return SPLIT.observe(training, Undefended(), Observation("training", 128, SPLIT.messages, 0))


@pytest.fixture(scope="module")
def view(run):
    return THREAT.view(run)


def attempt(attack):
    return Attempt(attack=attack, threat=THREAT, metrics=METRICS)


def readings(attack, run):
    return {reading.name: reading for reading in attempt(attack).read(run, stream(0)).readings}


@pytest.mark.parametrize("attack", ATTACKS, ids=str)
def test_the_attack_conforms(attack, run):
    check_value(attack)
    check_needs(attack)
    check_guess(attempt(attack), run)


@pytest.mark.parametrize("attack", ATTACKS, ids=str)
def test_a_trained_bottom_tells_more_than_its_features(attack, run):
    found = readings(attack, run)
    told, alone = found["leak_auc_passes"], found["leak_auc_features"]
    assert told.low > alone.high
    assert told.chance >= alone.value
    assert told.beats_chance()
    assert len(told.each) == 6
    assert told.each[-1] > told.each[0]
    assert "leak_auc_theory" not in found


@pytest.mark.parametrize("attack", ATTACKS, ids=str)
def test_an_untrained_bottom_tells_what_the_features_tell(attack, run):
    found = readings(attack.model_copy(update={"bottom": "initial"}), run)
    assert found["leak_auc_passes"].value == pytest.approx(found["leak_auc_features"].value)
    assert not any(reading.beats_chance() for reading in found.values())


@pytest.mark.parametrize("attack", ATTACKS, ids=str)
def test_the_null_view_is_that_of_an_untrained_bottom(attack):
    cell = Cell(scenario=SPLIT, defence=Undefended(), probe=attempt(attack), label=attack.kind)
    [null] = null_cells([cell])
    assert null.probe.attack == attack.model_copy(update={"bottom": "initial"})


@pytest.mark.parametrize("attack", ATTACKS, ids=str)
def test_no_gradient_is_looked_at(attack, view):
    silent = dataclasses.replace(view, messages=tuple(message.map(torch.zeros_like) for message in view.messages))
    one, other = (attack(each, stream(0)) for each in (view, silent))
    assert all(torch.equal(a.nan_to_num(), b.nan_to_num()) for a, b in zip(one.values, other.values, strict=True))


def test_known_labels_are_used_and_not_scored(view):
    guess = Completion(labels=20)(view, stream(0))
    unscored = guess.passes.values[0].isnan().all(0)
    assert int(unscored[torch.cat(guess.passes.rows).unique()].sum()) == 20
    assert not guess.passes.values[0, :, ~unscored].isnan().any()


def test_a_head_is_learned_from_known_rows():
    rng = torch.Generator().manual_seed(0)
    labels = (torch.rand(300, generator=rng) < 0.5).long()
    rows = torch.randn(300, 4, generator=rng) + 1.5 * labels[:, None] * torch.tensor([1.0, 0.0, 0.0, 0.0])
    known = torch.cat([(labels == label).nonzero()[:10, 0] for label in (0, 1)])
    for rounds in (0, 3):
        scores = Completion(rounds=rounds).score(rows, known, labels[known])
        assert scores[labels == 1].mean() > scores[labels == 0].mean() + 1
        assert torch.isfinite(scores).all()


@pytest.mark.parametrize("attack", ATTACKS, ids=str)
def test_only_the_feature_party_has_a_bottom(attack, run, view):
    wire = ThreatModel(seat="wire", knows=frozenset({Knows.HINTS})).view(run)
    with pytest.raises(Refusal, match=f"{attack.kind} needs the bottom model and its rows.* The seat is `wire`"):
        attack(wire, stream(0))
    many = dataclasses.replace(view, task=dataclasses.replace(view.task, classes=10))
    with pytest.raises(Refusal, match=r"tells two classes apart. Got 10"):
        attack(many, stream(0))


def test_hints_of_one_class_are_not_enough(view):
    blank = {
        key: dataclasses.replace(hints, labels=torch.zeros_like(hints.labels)) for key, hints in view.hints.items()
    }
    with pytest.raises(Refusal, match="completion needs known examples of both classes"):
        Completion()(dataclasses.replace(view, hints=blank), stream(0))
    assert issubclass(Completion, EmbeddingAttack)
