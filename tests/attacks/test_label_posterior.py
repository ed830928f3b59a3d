"""The posterior of labels under the stated noise: it adds up over passes, knows what the defence states, and refuses what it cannot know."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from leaktight.attacks import Clustering, LabelPosterior
from leaktight.core.defence import Chain, Undefended
from leaktight.core.errors import Refusal
from leaktight.core.message import Kind
from leaktight.core.probe import Attempt
from leaktight.core.random import stream
from leaktight.core.scenario import Observation
from leaktight.core.threat import Knows, ThreatModel
from leaktight.data import RareDigit
from leaktight.defences import GaussianNoise, IsotropicNoise, MaxNorm, SumKL
from leaktight.learning import Adam, Split
from leaktight.metrics import LeakAUC, LeakAUCPasses
from leaktight.models import MLP
from leaktight.testing import check_attack

SEAT = "feature-party"
THREAT = ThreatModel(seat=SEAT, knows=frozenset({Knows.DEFENCE}))
SPLIT = Split(
    data=RareDigit(),
    model=MLP(hidden=(16, 8, 8), activation="relu"),
    cut="relu2",
    passes=8,
    batch_size=128,
    optimiser=Adam(),
)


def played(defence):
    training = SPLIT.train(defence, 0)
    return SPLIT.observe(training, defence, Observation("training", 128, SPLIT.messages, 0))


def readings(attack, run):
    found = Attempt(attack=attack, threat=THREAT, metrics=(LeakAUC(), LeakAUCPasses())).read(run, stream(0)).readings
    return {reading.name: reading for reading in found}


@pytest.fixture(scope="module")
def runs():
    defences = {
        "none": Undefended(),
        "isotropic": IsotropicNoise(ratio=2.0),
        "sumkl": SumKL(bound=0.4),
        "max": MaxNorm(),
    }
    return {name: played(defence) for name, defence in defences.items()}


def test_the_attack_conforms(runs):
    check_attack(LabelPosterior(), runs["none"], (LeakAUC(),), seat=SEAT)


@pytest.mark.parametrize("name", ["none", "isotropic", "sumkl", "max"])
def test_log_ratios_add_up_over_passes_and_rows_dealt_out_by_chance_do_not(runs, name):
    found = readings(LabelPosterior(), runs[name])
    added, alone = found["leak_auc_passes"], found["leak_auc_features"]
    assert added.value > max(0.65, found["leak_auc"].value - 0.01)
    assert added.beats_chance()
    assert abs(alone.value - 0.5) < 0.1


def test_who_knows_the_law_does_better_than_who_takes_the_longest_direction(runs):
    plain, knowing = (
        readings(attack, runs["isotropic"])["leak_auc_passes"] for attack in (Clustering(), LabelPosterior())
    )
    assert knowing.low > plain.value


def test_it_models_what_states_its_noise_on_cut_gradients():
    attack = LabelPosterior()
    assert all(attack.adapts_to(defence) for defence in (SumKL(), MaxNorm(), IsotropicNoise()))
    assert attack.adapts_to(Chain(links=(Undefended(), SumKL())))
    assert not attack.adapts_to(Undefended())
    assert not attack.adapts_to(Chain(links=(SumKL(), GaussianNoise())))


def test_a_defence_that_states_nothing_of_cut_gradients_is_refused(runs):
    view = THREAT.view(runs["none"])
    for defence in (GaussianNoise(), Chain(links=(SumKL(), MaxNorm()))):
        with pytest.raises(
            Refusal, match=r"label_posterior needs a defence that states what it does to cut gradients. Got"
        ):
            LabelPosterior()(dataclasses.replace(view, defence=defence), stream(0))


def test_the_wire_weighs_each_message_by_itself(runs):
    wire = ThreatModel(seat="wire", knows=frozenset({Knows.DEFENCE})).view(runs["none"])
    guess = LabelPosterior()(wire, stream(0))
    assert guess.passes is None
    assert len(guess.values) == SPLIT.messages


def test_messages_of_zeros_say_nothing_and_none_at_all_is_refused(runs):
    view = THREAT.view(runs["sumkl"])
    zeros = dataclasses.replace(view, messages=tuple(message.map(torch.zeros_like) for message in view.messages[:8]))
    assert all(torch.isfinite(scores).all() for scores in LabelPosterior()(zeros, stream(0)).values)
    with pytest.raises(Refusal, match="label_posterior needs cut gradients of somebody else"):
        LabelPosterior()(dataclasses.replace(view, messages=view.of(Kind.ACTIVATION)), stream(0))
    many = dataclasses.replace(view, task=dataclasses.replace(view.task, classes=3))
    with pytest.raises(Refusal, match=r"label_posterior tells two classes apart. Got 3"):
        LabelPosterior()(many, stream(0))
