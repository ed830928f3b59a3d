"""GAN attack: from a seat in a training run to samples of another's class; with class keys, by how much of the key is known."""

from __future__ import annotations

import pytest
import torch

from leaktight.attacks import GanAttack
from leaktight.attacks.gan_party import SCOPE, GanParty
from leaktight.core.attack import GuessedSamples
from leaktight.core.defence import Undefended
from leaktight.core.errors import InvalidValue, Refusal
from leaktight.core.probe import Attempt
from leaktight.core.random import stream
from leaktight.core.scenario import Observation
from leaktight.core.threat import Knows, ThreatModel
from leaktight.data import ByClass, Digits
from leaktight.defences.class_keys import ClassKeys
from leaktight.learning import RoundRobin, Sgd
from leaktight.learning.federated import Federated
from leaktight.metrics import Recognised, RecognisedConfidence, standard
from leaktight.models import MLP
from leaktight.testing import check_attack
from leaktight.testing.seats import ATTACKER, SQUARES, active_run
from leaktight.testing.toys import toy_run

torch.set_num_threads(1)
QUICK = {
    "generator": {"noise": 16, "width": 4},
    "generator_steps": 20,
    "batch_size": 32,
    "optimiser": {"kind": "adam", "learning_rate": 0.01},
    "fakes": 50,
    "samples": 100,
}
KEYS = ClassKeys(dimensions=4096)


def attempt(**settings):
    attack = GanAttack(**{**QUICK, **settings})
    metrics = Recognised(), RecognisedConfidence()
    return Attempt(attack=attack, threat=ThreatModel(seat=ATTACKER, knows=attack.needs), metrics=metrics)


def recognised(trial, run):
    return trial.read(run, stream(0, "attack")).readings[0]


def test_it_keeps_the_promises_of_every_attack():
    check_attack(GanAttack(**QUICK))


@pytest.mark.parametrize("victim_class", [0, 1])
def test_it_makes_pictures_of_either_class_that_it_does_not_own(victim_class):
    trial = attempt(victim_class=victim_class)
    finding = trial.read(active_run(trial.attack), stream(0, "attack"))
    share, confidence = finding.readings
    assert share.value > 0.6
    assert share.beats_chance()
    assert confidence.beats_chance()
    assert finding.guess.label == victim_class
    # The light quarter is where it belongs, and the rest is darker.
    mean = finding.guess.inputs.mean((0, 1))
    quarters = mean.unfold(0, 4, 4).unfold(1, 4, 4).mean((2, 3)).flatten()
    assert quarters.argmax() == victim_class


def test_samples_speak_of_what_all_others_hold():
    trial = attempt()
    run = active_run(trial.attack, rounds=3)
    finding = trial.read(run, stream(0, "attack"))
    guess = finding.guess
    assert isinstance(guess, GuessedSamples)
    assert guess.keys == (("all but client-1", 3),)
    assert finding.truth[0].owned.labels.unique().tolist() == [0, 1]
    assert guess.inputs.shape == (100, *SQUARES)
    assert guess.rounds == (0, 1, 2, 3)
    assert guess.history.shape == (4, 8, *SQUARES)


def test_pictures_get_better_over_the_rounds():
    trial = attempt()
    guess = trial.read(active_run(trial.attack), stream(0, "attack")).guess
    light = guess.history[:, :, 0, :4, :4].mean((1, 2, 3)) - guess.history[:, :, 0, 4:, 4:].mean((1, 2, 3))
    assert light[-1] > light[0] + 0.3


def test_samples_follow_from_the_stream_and_the_memory_alone():
    trial = attempt()
    view = trial.threat.view(active_run(trial.attack, rounds=1))
    one, same, other = (trial.attack(view, stream(seed)).inputs for seed in (0, 0, 1))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
    assert 0 < one.min() < one.max() < 1


def test_with_noise_in_place_of_the_victims_updates_there_is_nothing_to_learn():
    trial = attempt()
    assert not recognised(trial, active_run(trial.attack, null=True)).beats_chance()


def test_with_class_keys_only_whoever_knows_the_key_makes_pictures_of_the_class():
    exact, random = attempt(class_key="exact"), attempt(class_key="random")
    known, unknown = (recognised(trial, active_run(trial.attack, defence=KEYS)) for trial in (exact, random))
    assert known.value > 0.6
    assert known.beats_chance()
    assert unknown.value <= 0.1
    assert not unknown.beats_chance()


def test_under_keys_samples_come_with_those_of_random_keys():
    trial = attempt(class_key="exact", controls=2)
    guess = trial.read(active_run(trial.attack, defence=KEYS, rounds=2), stream(0, "attack")).guess
    assert guess.controls.shape == (2, 100, *SQUARES)
    assert trial.read(active_run(trial.attack, rounds=1), stream(0, "attack")).guess.controls is None


def test_it_needs_keys_unless_it_tries_one_at_random_or_estimates_it():
    assert GanAttack().needs == GanAttack(class_key="random").needs == frozenset()
    for class_key in ("exact", "distance"):
        attack = GanAttack(class_key=class_key)
        assert attack.needs == {Knows.KEYS}
        with pytest.raises(Refusal, match="gan needs to know keys, which the threat model withholds"):
            attack.check(frozenset())


def test_it_is_active_and_takes_its_seat_and_those_of_its_accomplices():
    attack = GanAttack(accomplices=("client-2",))
    assert attack.active
    assert attack.further == ("client-2",)
    assert attack.claims == {"samples"}


def test_without_a_seat_in_the_training_run_it_refuses():
    with pytest.raises(Refusal, match="gan needs a generator that was trained from the seat `server`"):
        GanAttack()(ThreatModel().view(toy_run(rounds=1)), stream(0))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"victim_class": -1}, "`victim_class` of gan must be at least 0"),
        ({"batch_size": 1}, "`batch_size` of gan must be at least 2"),
        ({"early_stop": 0}, "`early_stop` of gan must be above 0"),
        ({"early_stop": 1.5}, "`early_stop` of gan must be at most 1"),
        ({"distance": 2.5}, "`distance` of gan must be at most 2"),
        ({"class_key": "stolen"}, "`class_key` of gan must be one of"),
        ({"generator": {"width": 0}}, "`width` of Generator must be at least 1"),
        ({"kept_rounds": 0}, "`kept_rounds` of gan must be at least 1"),
    ],
)
def test_settings_out_of_range_are_an_error(settings, sentence):
    with pytest.raises(InvalidValue, match=sentence):
        GanAttack(**settings)


def scenario(**settings):
    """Three participants on bundled digits, two of whom may attack."""
    return Federated(
        data=Digits(),
        model=MLP(),
        partition=ByClass(owned=((0, 1, 2, 3, 4), (5, 6, 7), (8, 9))),
        participants=3,
        protocol=RoundRobin(local_steps=10, optimiser=Sgd(learning_rate=0.1)),
        rounds=10,
        spare_classes=1,
        **settings,
    )


@pytest.mark.long
def test_on_real_digits_several_attackers_sit_in_the_training_and_each_keeps_a_generator_of_its_own():
    attack = GanAttack(
        victim_class=0, generator_steps=15, fakes=60, samples=100, generator={"width": 8}, accomplices=("client-2",)
    )
    trial = Attempt(attack=attack, threat=ThreatModel(seat="client-1"), metrics=standard())
    seated = []

    def enter(seat):
        found = trial.enter(seat)
        seated.append((seat.name, isinstance(found, GanParty)))
        return found

    training = scenario().train(Undefended(), 0, enter=enter)
    assert seated == [("client-0", False), ("client-1", True), ("client-2", True)]
    memories = training.snapshots["end"].memories
    one, other = (memories[name][SCOPE]["generator"] for name in ("client-1", "client-2"))
    assert SCOPE not in memories["client-0"]
    assert not torch.equal(one["linear.weight"], other["linear.weight"])
    run = scenario().observe(training, Undefended(), Observation("end", 32, 3, 0), trial.enter)
    readings = {reading.name: reading for reading in trial.read(run, stream(0, "attack")).readings}
    assert readings.keys() >= {"recognised", "recognised_confidence", "nearest_private", "sample_diversity"}
    # Pictures of the class or not, they are nobody's in particular.
    assert 0.3 < readings["nearest_private"].value < 0.7
    assert sorted(run.truths) == [("client-0", 10)]


def test_without_a_spare_class_a_training_is_refused():
    trial = Attempt(attack=GanAttack(**QUICK), threat=ThreatModel(seat="client-2"))
    with pytest.raises(Refusal, match="gan needs the victim's class and another one for its fakes"):
        Federated.model_validate({**scenario().to_dict(), "spare_classes": 0}).train(Undefended(), 0, enter=trial.enter)
