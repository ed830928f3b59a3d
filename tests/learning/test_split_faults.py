"""The story of a feature party that sends nonsense in the middle of a training run: one sentence, nothing changed, and on it goes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
import torch

from leaktight.core.defence import Undefended
from leaktight.core.errors import InvalidValue
from leaktight.core.message import Message
from leaktight.core.party import Party, Seat
from leaktight.core.scenario import Observation, flatten
from leaktight.data import RareDigit
from leaktight.defences import SumKL
from leaktight.learning import Split
from leaktight.learning.boundary import FEATURE_PARTY
from leaktight.learning.exchange import play
from leaktight.models import MLP

SCENARIO = Split(data=RareDigit(), model=MLP(hidden=(16, 8)), rounds=12, batch_size=32)
START = "The activations of step 5 from feature-party must "


def with_rows(change: Callable[[torch.Tensor], Any]) -> Callable[[Message], Any]:
    """Return a fault in the activations of an otherwise sound message."""
    return lambda message: message.map(change)


def broken(_: Message) -> Message:
    raise ConnectionError("The feature party is gone.")


FAULTS: dict[str, tuple[Callable[[Message], Any], type[Exception], str]] = {
    "NaN": (with_rows(lambda rows: rows.index_fill(0, torch.tensor([7]), float("nan"))), InvalidValue, START + "be finite numbers. Got NaN or infinite values in 1 of 32 rows."),
    "wrong shape": (with_rows(lambda rows: rows[:, :3]), InvalidValue, START + "have rows of shape (8,). Got (3,) "
                                                                               "instead."),
    "too many rows": (with_rows(lambda rows: rows.repeat(2, 1)), InvalidValue, START + "have 32 rows, one for each "
                                                                                       "example of the batch. Got 64 "
                                                                                       "instead."),
    "a single number": (with_rows(lambda rows: rows.sum()), InvalidValue, START + "have 32 rows of shape (8,). Got a "
                                                                                  "single number instead."),
    "nothing": (lambda message: dataclasses.replace(message, tensors={}), InvalidValue, START + "have 32 rows of shape (8,). Got nothing instead."),
    "None": (lambda _: None, InvalidValue, "feature-party must answer with a message. Got NoneType instead."),
    "another step": (lambda message: dataclasses.replace(message, round=9), InvalidValue, "label-party awaits the "
                                                                                          "activations of step 5. Got "
                                                                                          "those of step 9 instead; "
                                                                                          "resume both parties from "
                                                                                          "one step."),
    "an error": (broken, ConnectionError, "The feature party is gone."),
}  # fmt: skip


@dataclasses.dataclass
class Faulty:
    """A feature party that is honest until step 5."""

    honest: Party
    fault: Callable[[Message], Any]
    name: str = FEATURE_PARTY

    def respond(self, message: Message) -> Any:
        answer = self.honest.respond(message)
        return self.fault(answer) if answer.round == 5 else answer

    def close(self) -> None:
        return None


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two checkpoints are the same to the last bit."""
    one, other = flatten(one), flatten(other)
    return one.keys() == other.keys() and all(
        torch.equal(torch.as_tensor(one[name]), torch.as_tensor(other[name])) for name in one
    )


@pytest.mark.parametrize("defence", [Undefended(), SumKL(bound=0.4)], ids=str)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_training_stops_at_a_fault_and_goes_on_from_where_it_was(fault: str, defence: Any) -> None:
    change, error, sentence = FAULTS[fault]
    data = RareDigit().load()
    twins = SCENARIO.parties(data, defence, seed=0)
    stops: dict[int, Any] = {}

    def keep(played: int, _: object) -> None:
        stops[played] = (*(party.state() for party in twins), dict(twins[1].local.notes))

    play(*twins, twins[1].opening(), 12, keep)
    feature, label = SCENARIO.parties(data, defence, seed=0)
    played: list[int] = []
    with pytest.raises(error) as found:
        play(Faulty(feature, change), label, label.opening(), 12, lambda step, _: played.append(step))
    assert str(found.value) == sentence
    # The fifth gradient was applied at both, although the answer to it was nonsense.
    assert played[-1] in (4, 5)
    assert same(label.state(), stops[5][1])
    assert label.local.notes == stops[5][2]
    assert same(feature.state(), stops[5][0])
    play(feature, label, label.opening(), 7, lambda *_: None)
    assert same(feature.state(), stops[12][0])
    assert same(label.state(), stops[12][1])


@pytest.mark.parametrize("fault", FAULTS)
def test_an_observation_with_a_faulty_party_is_one_sentence_and_the_training_stays_intact(fault: str) -> None:
    change, error, sentence = FAULTS[fault]
    training = SCENARIO.train(Undefended(), seed=0)
    observation = Observation("initial", 32, 8, 0)
    before = SCENARIO.observe(training, Undefended(), observation)
    kept = {
        stage: {name: flatten(memory) for name, memory in at.memories.items()}
        for stage, at in training.snapshots.items()
    }

    def enter(seat: Seat) -> Party:
        return Faulty(seat.honest, change) if seat.name == FEATURE_PARTY else seat.honest

    with pytest.raises(error) as found:
        SCENARIO.observe(training, Undefended(), observation, enter)
    assert str(found.value) == sentence
    assert all(
        same(memory, kept[stage][name])
        for stage, at in training.snapshots.items()
        for name, memory in at.memories.items()
    )
    after = SCENARIO.observe(training, Undefended(), observation)
    for one, other in zip(before.transcript, after.transcript, strict=True):
        assert one.key == other.key
        assert same(dict(one.tensors), dict(other.tensors))
