"""Seats in a federated training: who takes one plays all rounds, remembers them, and is shown nothing but what the seat has."""

import dataclasses
from typing import Any, Literal

import pytest
import torch

from leaktight.core.defence import Chain, Defence, Undefended
from leaktight.core.message import Kind, Message
from leaktight.core.party import Seat
from leaktight.core.scenario import Observation
from leaktight.core.threat import ThreatModel
from leaktight.data import ByClass, Digits
from leaktight.learning import FedAvg, Federated, FedSGD, RoundRobin
from leaktight.models import MLP

ROUNDS = 8


class Secretive(Defence):
    """Each party draws a secret number and reveals it at the end; the joint task knows how many were revealed."""

    kind: Literal["test_secretive"] = "test_secretive"

    def on_task(self, task, local):
        local.memory.setdefault("secret", local.draws.uniforms((1,)))
        return task

    def on_close(self, local):
        return {"number": local.memory["secret"]}

    def on_reveal(self, task, reveals):
        seen.extend(reveals)
        return task


seen: list[Message] = []


@dataclasses.dataclass
class Mole:
    """Answers as the honest would, counts, and reveals a number of its own."""

    seat: Seat

    @property
    def name(self) -> str:
        return self.seat.name

    def respond(self, message: Message) -> Message:
        own = self.seat.local.scope("mole").memory
        own["turns"] = own.get("turns", 0) + 1
        own["last"] = {"bias": message.tensors["head.bias"].clone()}
        return self.seat.honest.respond(message)

    def close(self) -> Message | None:
        return Message(Kind.REVEAL, self.name, "server", 0, {"number": torch.tensor([7.0])})


def entering(*names: str) -> Any:
    """Return an `enter` for these seats, and the seats it was shown."""
    seats: list[Seat] = []

    def enter(seat: Seat) -> Any:
        seats.append(seat)
        return Mole(seat) if seat.name in names else seat.honest

    return enter, seats


def scenario(**settings: Any) -> Federated:
    base = {
        "data": Digits(),
        "model": MLP(hidden=(8,)),
        "participants": 3,
        "rounds": ROUNDS,
        "protocol": RoundRobin(local_steps=1),
    }
    return Federated(**{**base, **settings})


def same(one, other) -> bool:
    return all(torch.equal(tensor, other.parameters[name]) for name, tensor in one.parameters.items())


@pytest.mark.parametrize(
    "protocol", [FedSGD(), FedAvg(local_steps=2), FedSGD(aggregation="secure"), RoundRobin(order="random")], ids=str
)
def test_who_takes_a_seat_plays_every_round_and_its_memory_is_kept_at_every_stage(protocol):
    enter, _ = entering("client-1")
    training = scenario(protocol=protocol, moments=4).train(Undefended(), 0, enter=enter)
    turns = {
        stage: shot.memories["client-1"].get("mole", {}).get("turns", 0) for stage, shot in training.snapshots.items()
    }
    assert turns == {
        "initial": 0,
        "early": 1,
        "end": ROUNDS,
        "moment-0": 0,
        "moment-1": 2,
        "moment-2": 4,
        "moment-3": 6,
    }
    assert "mole" not in training.snapshots["end"].memories["client-0"]


def test_a_training_that_nobody_disturbs_is_the_same_to_the_last_bit():
    plain = scenario().train(Undefended(), 0)
    for names in ((), ("client-1",)):
        enter, seats = entering(*names)
        found = scenario().train(Undefended(), 0, enter=enter)
        assert same(plain.snapshots["end"], found.snapshots["end"])
        assert found.utility == plain.utility
        assert [seat.name for seat in seats] == ["client-0", "client-1", "client-2"]


def test_a_seat_has_its_own_part_of_the_data_and_the_public_task():
    made = scenario(partition=ByClass(owned=((0, 1, 2), (3, 4, 5, 6), (7, 8, 9))))
    enter, seats = entering("client-1")
    made.train(Secretive(), 0, enter=enter)
    seat = seats[1]
    assert seat.data.labels.unique().tolist() == [3, 4, 5, 6] == list(seat.local.classes)
    assert seat.local.party == "client-1"
    assert seat.task is seat.honest.public
    assert set(seat.local.memory) <= {"mole", "defence", "private"}


@pytest.mark.parametrize("defence", [Secretive(), Chain(links=(Secretive(),))], ids=str)
def test_a_seat_is_shown_the_others_secrets_but_an_attack_only_what_is_granted(defence):
    enter, seats = entering("client-1")
    training = scenario(rounds=1).train(defence, 0, enter=enter)
    name = "number" if isinstance(defence, Secretive) else "0-test_secretive/number"
    known = seats[1].known
    assert set(known) == {f"keys/client-{k}/{name}" for k in (0, 2)}
    memory = training.snapshots["end"].memories["client-0"]["defence"]
    secret = memory["secret"] if isinstance(defence, Secretive) else memory["0-test_secretive"]["secret"]
    assert torch.equal(known[f"keys/client-0/{name}"], secret)
    assert ThreatModel(seat="client-1").grant(known) == {}
    assert scenario(rounds=1).train(Undefended(), 0, enter=enter)
    assert seats[-1].known == {}


def test_who_sits_in_a_seat_reveals_in_its_place():
    seen.clear()
    enter, _ = entering("client-1")
    scenario(rounds=1).train(Secretive(), 0, enter=enter)
    assert [message.sender for message in seen] == ["client-0", "client-1", "client-2"]
    assert seen[1].tensors["number"].tolist() == [7.0]


def test_an_observation_seats_the_same_party_with_the_memory_of_its_training():
    made = scenario()
    enter, _ = entering("client-1")
    training = made.train(Undefended(), 0, enter=enter)
    run = made.observe(training, Undefended(), Observation("end", 4, 6, 0), enter)
    assert {key[0] for key in run.truths} == {"client-0", "client-2"}
    assert [m.sender for m in run.transcript if m.kind is Kind.UPDATE] == ["client-0", "client-1", "client-2"] * 2
    view = ThreatModel(seat="client-1").view(run)
    assert view.memory["mole"]["turns"] == ROUNDS + 2
    assert torch.equal(view.memory["mole"]["last"]["bias"], training.snapshots["end"].parameters["head.bias"])
    assert training.snapshots["end"].memories["client-1"]["mole"]["turns"] == ROUNDS
    assert "mole" not in ThreatModel(seat="client-2").view(run).memory


def test_throughout_training_each_moment_has_the_memory_of_that_moment():
    made = scenario(moments=4)
    enter, _ = entering("client-1")
    training = made.train(Undefended(), 0, enter=enter)
    run = made.observe(training, Undefended(), Observation("training", 4, 24, 0), enter)
    # Two rounds from the last moment on, which is after six.
    assert ThreatModel(seat="client-1").view(run).memory["mole"]["turns"] == 8


@pytest.mark.parametrize("stage", ["end", "training"])
@pytest.mark.parametrize("names", [("client-1",), ("client-0", "client-1", "client-2")], ids=len)
def test_behind_a_secure_sum_the_truth_is_that_of_the_honest(stage, names):
    made = scenario(protocol=FedSGD(aggregation="secure"), moments=2)
    enter, _ = entering(*names)
    training = made.train(Undefended(), 0, enter=enter)
    run = made.observe(training, Undefended(), Observation(stage, 4, 2, 0), enter)
    honest = 3 - len(names)
    assert [len(found.raw) for found in run.truths.values()] == ([4 * honest] * 2 if honest else [])


def test_spare_classes_are_outputs_that_no_example_has():
    made = scenario(spare_classes=2)
    data = made.data.load()
    assert (made.task(data, 0).classes, made.model.build(data.shape, 12, 0).head.weight.shape[0]) == (12, 12)
    assert made.train(Undefended(), 0).snapshots["end"].parameters["head.bias"].shape == (12,)
    assert made.clients(made.task(data, 0), data, Undefended(), 0)[0].local.classes == tuple(range(10))
    assert "spare_classes" not in scenario().to_dict()
    assert Federated.model_validate(made.to_dict()) == made
