"""Attempts: an attack is checked, run and graded; a guess of the wrong form is an error."""

import dataclasses
from typing import ClassVar, Literal

import pytest
import torch
from torch import nn

from leaktight.core.attack import Attack, Ensemble, GuessedLabels, Reconstruction
from leaktight.core.defence import Undefended
from leaktight.core.errors import LeaktightError, Refusal
from leaktight.core.local import Local
from leaktight.core.message import Kind, Message
from leaktight.core.metric import MESSAGE, Metric, Reading
from leaktight.core.party import Seat
from leaktight.core.probe import Attempt, Finding, Probe
from leaktight.core.random import stream
from leaktight.core.run import GroundTruth, Run
from leaktight.core.task import Batch, Model
from leaktight.core.threat import Knows, ThreatModel
from leaktight.learning.task import classification


class Constant(Attack):
    """Answers the same number everywhere."""

    kind: Literal["test_constant"] = "test_constant"
    claims: ClassVar[frozenset[str]] = frozenset({"inputs", "labels"})
    width: int = 3
    number: float = 0.5
    greedy: bool = False

    @property
    def needs(self) -> frozenset[Knows]:
        return frozenset({Knows.LABELS}) if self.greedy else frozenset()

    def run(self, view, rng):
        keys = tuple(exchange.sent.key for exchange in view.exchanges())
        return Reconstruction(keys, tuple(torch.full((1, self.width), self.number).exp().log() for _ in keys))


class Error(Metric):
    """The mean absolute error."""

    kind: Literal["test_error"] = "test_error"
    claim: ClassVar[str] = "inputs"
    leaks = "low"

    def grade(self, guess, truth, rng, public=None):
        errors = [(g - t.raw.inputs).abs().mean().item() for g, t in zip(guess.inputs, truth, strict=True)]
        return [Reading(name="error", value=sum(errors) / len(errors), n=len(errors), leaks="low", each=tuple(errors))]


class LabelError(Error):
    """Grades labels, which the attack did not guess."""

    kind: Literal["test_label_error"] = "test_label_error"
    claim: ClassVar[str] = "labels"


class Size(Metric):
    """Speaks of the message, whatever was guessed."""

    kind: Literal["test_size"] = "test_size"
    claim: ClassVar[str] = MESSAGE
    leaks: ClassVar[None] = None

    def grade(self, guess, truth, rng, public=None):
        return [Reading(name="size", value=len(ground_truth.sent.tensors)) for ground_truth in truth]


class Silent(Constant):
    """Claims nothing at all."""

    kind: Literal["test_silent"] = "test_silent"
    claims: ClassVar[frozenset[str]] = frozenset()


@pytest.fixture
def run() -> Run:
    task = classification(Model(nn.Linear(3, 4), nn.Linear(4, 2)), (3,), 2)
    ask = Message(Kind.PARAMETERS, "server", "client-0", 0, task.public_parameters())
    reply = dataclasses.replace(ask, kind=Kind.GRADIENT, sender="client-0", receiver="server")
    batch = Batch(torch.zeros(1, 3), torch.zeros(1).long())
    return Run((ask, reply), task, Undefended(), {reply.key: GroundTruth(task, batch, batch, reply, reply)})


def test_a_guess_is_graded_by_what_it_claims(run):
    finding = Attempt(attack=Constant(), metrics=(Error(), LabelError())).read(run, stream(0))
    assert [reading.name for reading in finding.readings] == ["error"]
    assert finding.readings[0].value == pytest.approx(0.5)


@pytest.mark.parametrize("attack", [Constant(), Silent()], ids=str)
def test_a_metric_of_the_message_is_graded_whatever_the_guess_claims(run, attack):
    readings = Attempt(attack=attack, metrics=(Error(), LabelError(), Size())).read(run, stream(0)).readings
    assert [reading.name for reading in readings] == [*(["error"] if attack.claims else []), "size"]
    assert (readings[-1].value, readings[-1].leaks) == (4, None)


class Aware(Error):
    """Says what it was told of the attacker's knowledge."""

    kind: Literal["test_aware"] = "test_aware"

    def grade(self, guess, truth, rng, public=None):
        labels = -1 if guess.labels is None else int(guess.labels[0])
        return [
            Reading(name="public", value=-1 if public is None else len(public)),
            Reading(name="labels", value=labels),
        ]


class Instrument(Aware):
    """Needs public examples whoever else has them."""

    kind: Literal["test_instrument"] = "test_instrument"
    learns_from_public: ClassVar[bool] = True


@pytest.mark.parametrize(
    ("knows", "public", "labels"),
    [((), -1, -1), ((Knows.AUXILIARY,), 5, -1), ((Knows.LABELS,), -1, 0), ((Knows.AUXILIARY, Knows.LABELS), 5, 0)],
)
def test_a_guess_is_compared_with_what_the_threat_model_lets_anybody_answer(run, knows, public, labels):
    run = dataclasses.replace(run, auxiliary=Batch(torch.zeros(5, 3), torch.zeros(5).long()))
    attempt = Attempt(
        attack=Constant(), threat=ThreatModel(knows=frozenset(knows)), metrics=(Aware(), LabelError(), Instrument())
    )
    found = attempt.read(run, stream(0))
    assert [reading.value for reading in found.readings] == [public, labels, 5, labels]
    assert found.guess.labels is None


class Together(Constant):
    """Answers without labels, though one of its attacks reads them."""

    kind: Literal["test_together"] = "test_together"
    reads: bool = True

    def run(self, view, rng):
        answer = super().run(view, rng)
        read = GuessedLabels(answer.keys, tuple(torch.tensor([1]) for _ in answer.keys))
        return Ensemble(answer.keys, answer, {"search": answer, **({"labels": read} if self.reads else {})})


@pytest.mark.parametrize(("reads", "knows", "known"), [(True, (), 1), (False, (), -1), (True, (Knows.LABELS,), 0)])
def test_what_one_attack_of_an_attacker_reads_counts_as_known_to_all(run, reads, knows, known):
    """The chance level of an image then knows the mean of its class; what is granted comes first."""
    attempt = Attempt(attack=Together(reads=reads), threat=ThreatModel(knows=frozenset(knows)), metrics=(Aware(),))
    labels = {
        reading.by: reading.value for reading in attempt.read(run, stream(0)).readings if reading.name == "labels"
    }
    assert (labels[""], labels["search"]) == (known, known)


def test_what_is_withheld_refuses_the_attack(run):
    with pytest.raises(Refusal, match="needs to know labels"):
        Attempt(attack=Constant(greedy=True)).read(run, stream(0))
    Attempt(attack=Constant(greedy=True), threat=ThreatModel(knows=frozenset({Knows.LABELS}))).read(run, stream(0))


@pytest.mark.parametrize(
    ("settings", "sentence"), [({"width": 4}, "must guess inputs of shape"), ({"number": 1e3}, "not finite")]
)
def test_a_guess_of_the_wrong_form_is_an_error(run, settings, sentence):
    with pytest.raises(LeaktightError, match=sentence):
        Attempt(attack=Constant(**settings)).read(run, stream(0))


def test_an_attempt_survives_json():
    attempt = Attempt(attack=Constant(number=0.25), metrics=(Error(),))
    assert Attempt.model_validate(attempt.to_dict()) == attempt


class Sitting(Constant):
    """Takes its seats, and returns the seats themselves in place of parties, so that a test can look at them."""

    kind: Literal["test_sitting"] = "test_sitting"
    accomplices: tuple[str, ...] = ()

    @property
    def active(self):
        return True

    def take(self, seat):
        return seat


class Looking(Probe):
    """Takes no seat."""

    kind: Literal["test_looking"] = "test_looking"

    def read(self, run, rng):
        return Finding(())


def make_seat(name: str) -> Seat:
    task = classification(Model(nn.Linear(3, 4), nn.Linear(4, 2)), (3,), 2)
    known = {"keys/client-9/3": torch.ones(2), "labels/client-9/3": torch.zeros(2)}
    return Seat(name, task, Batch(torch.zeros(1, 3), torch.zeros(1).long()), Local(name, seed=0), "honest", known)


def test_who_only_observes_leaves_the_seats_and_the_training_to_the_honest():
    for probe in (Attempt(attack=Constant(), threat=ThreatModel(seat="client-1")), Looking()):
        assert probe.enter(make_seat("client-1")) == "honest"
        assert probe.entrant is None
    assert (Constant().active, Constant().further) == (False, ())


def test_an_active_attack_takes_its_seat_and_those_of_its_accomplices():
    probe = Attempt(attack=Sitting(accomplices=("client-3",)), threat=ThreatModel(seat="client-1"))
    taken = [
        name for name in ("client-0", "client-1", "client-2", "client-3") if probe.enter(make_seat(name)) != "honest"
    ]
    assert taken == ["client-1", "client-3"]
    assert probe.attack.further == ("client-3",)


def test_in_its_seat_an_attack_is_told_only_what_the_threat_model_grants():
    given = make_seat("client-1")
    for knows, names in ((frozenset(), []), (frozenset({Knows.LABELS}), ["labels/client-9/3"])):
        seat = Attempt(attack=Sitting(), threat=ThreatModel(seat="client-1", knows=knows)).enter(given)
        assert sorted(seat.known) == names
        assert (seat.local, seat.data, seat.honest) == (given.local, given.data, given.honest)
    seat.known["labels/client-9/3"].fill_(7)
    assert given.known["labels/client-9/3"].tolist() == [0, 0]


def test_who_enters_a_training_is_the_attack_and_the_threat_without_the_grades():
    probe = Attempt(attack=Sitting(number=0.3), threat=ThreatModel(seat="client-1"), metrics=(Error(),))
    assert probe.entrant == Attempt(attack=probe.attack, threat=probe.threat)
    assert probe.entrant.key == probe.model_copy(update={"metrics": (Size(),)}).entrant.key
