"""The server's strategy and a participant's app write down what crosses between them, and train as before."""

import numpy as np
import pytest
from flwr.app import ConfigRecord, Error, Message, RecordDict
from flwr.serverapp.strategy import FedAvg

from leaktight.captures import read_captures
from leaktight.core.errors import InvalidValue
from leaktight.defences import GaussianNoise
from leaktight.flower import TELEMETRY_OFF, disable_telemetry, protect, record, tap
from leaktight.flower.tap import facts_of

BEFORE = {"weight": np.zeros((2, 2), np.float32), "steps": np.int64(0)}
AFTER = {"weight": np.full((2, 2), 0.5, np.float32), "steps": np.int64(4)}


class Planned(FedAvg):
    """Asks these messages, whoever is connected."""

    def __init__(self, messages):
        super().__init__()
        self.messages = messages

    def configure_train(self, server_round, arrays, config, grid):
        return self.messages


@pytest.fixture
def asked(by_hand):
    return [by_hand.ask(by_hand.arrays(**BEFORE), node=node, lr=0.1) for node in (7, 8)]


def answers(by_hand, asked):
    app = by_hand.answering(by_hand.arrays(**AFTER))
    return [app(message, by_hand.context()) for message in asked]


def test_every_answer_is_written_and_aggregated_as_before(by_hand, asked, tmp_path):
    strategy = record(Planned(asked), tmp_path / "seen", shape=(1, 2, 2), batch_size=5, epochs=2, model="mine:net")
    assert strategy.configure_train(3, by_hand.arrays(**BEFORE), ConfigRecord(), None) == asked
    arrays, metrics = strategy.aggregate_train(3, iter(answers(by_hand, asked)))
    assert (arrays["weight"].numpy() == 0.5).all()
    assert metrics["train_loss"] == 0.5
    captures = read_captures(tmp_path / "seen")
    assert [capture.manifest.sender for capture in captures] == ["node-7", "node-8"]
    manifest = captures[0].manifest
    assert (manifest.round, manifest.kind, manifest.learning_rate) == (3, "update", 0.1)
    assert (manifest.examples, manifest.local_steps, manifest.batch_size) == (20, 4, 5)
    assert (manifest.model, manifest.shape) == ("mine:net", (1, 2, 2))
    assert captures[0].tensors()["weight"].tolist() == [[0.5, 0.5], [0.5, 0.5]]
    assert set(captures[0].parameters()) == {"weight", "steps"}


def test_errors_and_strangers_are_not_written(by_hand, asked, tmp_path):
    strategy = record(Planned(asked[:1]), tmp_path)
    strategy.configure_train(1, by_hand.arrays(**BEFORE), ConfigRecord(), None)
    replies = [Message(Error(2, "no data"), reply_to=asked[0]), *answers(by_hand, asked[1:])]
    strategy.aggregate_train(1, replies)
    assert not list(tmp_path.glob("*.json"))


def test_a_capture_that_cannot_be_written_does_not_end_the_training(by_hand, asked, tmp_path, caplog):
    strategy = record(Planned(asked), tmp_path, learning_rate=-1.0)
    strategy.configure_train(1, by_hand.arrays(**BEFORE), ConfigRecord(), None)
    arrays, _ = strategy.aggregate_train(1, answers(by_hand, asked))
    assert arrays is not None
    assert "A message of node-7 could not be recorded" in caplog.text


def test_everything_else_is_the_strategys_own(by_hand, asked, tmp_path):
    strategy = record(FedAvg(fraction_evaluate=0.0), tmp_path)
    assert list(strategy.configure_evaluate(1, by_hand.arrays(**BEFORE), ConfigRecord(), None)) == []
    assert strategy.aggregate_evaluate(1, []) is None
    strategy.summary()


def test_a_folder_of_another_run_is_refused(by_hand, asked, tmp_path):
    mod = tap(tmp_path, shape=(1, 2, 2))
    mod(asked[0], by_hand.context(), by_hand.answering(by_hand.arrays(**AFTER)))
    with pytest.raises(InvalidValue, match="holds captures already"):
        record(FedAvg(), tmp_path)


def test_the_tap_sees_what_leaves_the_mods_behind_it(by_hand, asked, tmp_path):
    app, guard, context = by_hand.answering(by_hand.arrays(**AFTER)), protect(GaussianNoise(std=1.0)), by_hand.context()
    outer, inner = tap(tmp_path / "out", epochs=1, batch_size=5), tap(tmp_path / "in")

    def guarded(message, where):
        return guard(message, where, lambda one, other: inner(one, other, app))

    reply = outer(asked[0], context, guarded)
    [left], [was] = read_captures(tmp_path / "out"), read_captures(tmp_path / "in")
    assert np.allclose(left.tensors()["weight"], by_hand.values(reply)["weight"])
    assert was.tensors()["weight"].tolist() == [[0.5, 0.5], [0.5, 0.5]]
    assert (left.manifest.name, left.manifest.local_steps, left.manifest.learning_rate) == ("node-7/1", 2, 0.1)


def test_the_tap_knows_what_came_although_the_app_answers_in_its_place(by_hand, asked, tmp_path):
    def app(message, context):
        message.content["arrays"] = by_hand.arrays(**AFTER)
        return Message(message.content, reply_to=message)

    tap(tmp_path)(asked[0], by_hand.context(), app)
    [left] = read_captures(tmp_path)
    assert left.tensors()["weight"].tolist() == [[0.5, 0.5], [0.5, 0.5]]


def test_the_tap_leaves_other_messages_alone(by_hand, tmp_path):
    app = by_hand.answering(by_hand.arrays(**AFTER))
    tap(tmp_path)(by_hand.ask(by_hand.arrays(**BEFORE), "evaluate"), by_hand.context(), app)
    tap(tmp_path)(
        by_hand.ask(by_hand.arrays(**BEFORE)),
        by_hand.context(),
        lambda message, context: Message(Error(2, "x"), reply_to=message),
    )
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("config", "known", "expected"),
    [
        ({}, {}, {"round": 0, "examples": 10}),
        ({"lr": True, "batch-size": "many"}, {}, {"round": 0, "examples": 10}),
        (
            {"learning_rate": 0.5, "local-epochs": 3, "batch_size": 4},
            {},
            {"learning_rate": 0.5, "local_steps": 9, "examples": 30},
        ),
        (
            {"lr": 0.5},
            {"learning_rate": 0.1, "local_steps": 2, "examples": 8},
            {"learning_rate": 0.1, "local_steps": 2, "examples": 8},
        ),
    ],
)
def test_facts_come_from_who_tells_and_then_from_the_configuration(config, known, expected):
    facts = facts_of(RecordDict({"config": ConfigRecord(config)}), 10, known)
    assert {name: facts[name] for name in expected} == expected
    if not config:
        assert "local_steps" not in facts


def test_telemetry_is_off_unless_a_user_wants_otherwise():
    environment = {"RAY_USAGE_STATS_ENABLED": "1"}
    disable_telemetry(environment)
    assert environment == {**TELEMETRY_OFF, "RAY_USAGE_STATS_ENABLED": "1"}
