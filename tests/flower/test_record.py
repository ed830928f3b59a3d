"""The server's strategy and a participant's app write down what crosses between them, and train as before."""

import sys

import numpy as np
import pytest
import torch
from flwr.app import ConfigRecord, Error, Message
from flwr.serverapp.strategy import FedAvg
from torch.utils.data import DataLoader, TensorDataset

from leaktight.captures import read_captures, read_truth
from leaktight.core.errors import InvalidValue
from leaktight.defences import GaussianNoise
from leaktight.flower import TELEMETRY_OFF, describe_training, disable_telemetry, keep_truth, protect, record, tap
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
def messages(by_hand):
    return [by_hand.ask(by_hand.arrays(**BEFORE), node=node, lr=0.1) for node in (7, 8)]


def answers(by_hand, messages):
    app = by_hand.answering(by_hand.arrays(**AFTER))
    return [app(message, by_hand.context()) for message in messages]


def test_every_answer_is_written_and_aggregated_as_before(by_hand, messages, tmp_path):
    strategy = record(Planned(messages), tmp_path / "seen", shape=(1, 2, 2), batch_size=5, epochs=2, model="mine:net")
    assert strategy.configure_train(3, by_hand.arrays(**BEFORE), ConfigRecord(), None) == messages
    arrays, metrics = strategy.aggregate_train(3, iter(answers(by_hand, messages)))
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


def test_errors_and_strangers_are_not_written(by_hand, messages, tmp_path):
    strategy = record(Planned(messages[:1]), tmp_path)
    strategy.configure_train(1, by_hand.arrays(**BEFORE), ConfigRecord(), None)
    replies = [Message(Error(2, "no data"), reply_to=messages[0]), *answers(by_hand, messages[1:])]
    strategy.aggregate_train(1, replies)
    assert not list(tmp_path.glob("*.json"))


def test_a_capture_that_cannot_be_written_does_not_end_the_training(by_hand, messages, tmp_path, caplog, monkeypatch):
    def full(*_, **__):
        raise OSError("disk full")

    # The package has a function of the module's name.
    monkeypatch.setattr(sys.modules["leaktight.flower.tap"], "write_capture", full)
    strategy = record(Planned(messages), tmp_path)
    strategy.configure_train(1, by_hand.arrays(**BEFORE), ConfigRecord(), None)
    arrays, _ = strategy.aggregate_train(1, answers(by_hand, messages))
    assert arrays is not None
    assert "A message of node-7 could not be recorded: disk full" in caplog.text


@pytest.mark.parametrize(
    ("known", "why"),
    [
        ({"learning_rate": -1.0}, "`learning_rate` of Known must be above 0"),
        ({"learning_rte": 0.1}, "Did you mean `learning_rate`?"),
        ({"mean": (0.5,)}, "as many `mean` as `std`"),
    ],
)
def test_what_is_stated_wrongly_is_one_sentence_before_the_training(tmp_path, known, why):
    for start in (lambda: record(FedAvg(), tmp_path, **known), lambda: tap(tmp_path, **known)):
        with pytest.raises(InvalidValue) as caught:
            start()
        assert why in str(caught.value)


def recorded(by_hand, folder, config, known, reply=None, run_config=None):
    """Return the manifest of one exchange, and what the server's log asked."""
    messages = [by_hand.ask(by_hand.arrays(**BEFORE), **config)]
    context = by_hand.context()
    context.run_config = run_config or {}
    strategy = record(Planned(messages), folder, context=context, **known)
    strategy.configure_train(1, by_hand.arrays(**BEFORE), ConfigRecord(), None)
    app = by_hand.answering(by_hand.arrays(**AFTER), **({"training": reply} if reply else {}))
    arrays, _ = strategy.aggregate_train(1, [app(messages[0], context)])
    assert arrays is not None
    [capture] = read_captures(folder)
    return capture.manifest


def test_nothing_that_is_unknown_is_written_as_zero(by_hand, tmp_path, caplog):
    manifest = recorded(by_hand, tmp_path, {}, {})
    for name in ("optimiser", "learning_rate", "momentum", "weight_decay", "local_steps", "batch_size", "mean", "std"):
        assert getattr(manifest, name) is None
    assert (manifest.examples, manifest.dataset_size) == (None, 10)
    [question] = [line.message for line in caplog.records if line.levelname == "WARNING"]
    assert question.startswith(
        "The app does not say how its updates are made: the shape of one example, the number of "
    )
    assert (
        "`record(..., shape=(1, 28, 28), local_steps=1, learning_rate=0.1, optimiser='sgd', momentum=0.0, " in question
    )
    assert "until then audits assume one local step" in question


def test_settings_come_from_the_reply_then_the_message_then_the_run(by_hand, tmp_path, caplog):
    net = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.3, momentum=0.9)
    data = TensorDataset(torch.zeros(10, 1, 2, 2), torch.zeros(10))
    reply = describe_training(optimizer, DataLoader(data, batch_size=4), mean=())
    run_config = {"lr": 0.1, "weight-decay": 0.5, "local-epochs": 2, "optimizer": "adam", "batch-size": "auto"}
    manifest = recorded(
        by_hand, tmp_path, {"lr": 0.2, "local-epochs": 3}, {"model": torch.nn.Linear}, reply, run_config
    )
    assert (manifest.optimiser, manifest.learning_rate, manifest.momentum) == ("sgd", 0.3, 0.9)
    # The optimiser itself says that there is none.
    assert manifest.weight_decay == 0
    assert (manifest.epochs, manifest.batch_size, manifest.local_steps, manifest.examples) == (3, 4, 9, 30)
    assert (manifest.mean, manifest.std, manifest.shape) == ((), (), (1, 2, 2))
    assert manifest.model == "torch.nn.modules.linear:Linear"
    assert not [line for line in caplog.records if line.levelname == "WARNING"]


def test_the_run_alone_may_say_everything(by_hand, tmp_path):
    config = {"learning-rate": 0.1, "momentum": 0.0, "weight-decay": 0.0, "optimizer": "SGD", "local-steps": 2}
    manifest = recorded(by_hand, tmp_path, {}, {"mean": ()}, run_config={**config, "batch-size": 4})
    assert (manifest.optimiser, manifest.learning_rate, manifest.momentum, manifest.weight_decay) == ("sgd", 0.1, 0, 0)
    # Ten examples do not make two batches of four, so the ten are not what the steps were taken on.
    assert (manifest.local_steps, manifest.examples, manifest.dataset_size) == (2, 8, 10)


def test_everything_else_is_the_strategys_own(by_hand, messages, tmp_path):
    strategy = record(FedAvg(fraction_evaluate=0.0), tmp_path)
    assert list(strategy.configure_evaluate(1, by_hand.arrays(**BEFORE), ConfigRecord(), None)) == []
    assert strategy.aggregate_evaluate(1, []) is None
    strategy.summary()


def test_a_folder_of_another_run_is_refused(by_hand, messages, tmp_path):
    mod = tap(tmp_path, shape=(1, 2, 2))
    mod(messages[0], by_hand.context(), by_hand.answering(by_hand.arrays(**AFTER)))
    with pytest.raises(InvalidValue, match="holds captures already"):
        record(FedAvg(), tmp_path)


def test_the_tap_sees_what_leaves_the_mods_behind_it(by_hand, messages, tmp_path):
    app, guard, context = by_hand.answering(by_hand.arrays(**AFTER)), protect(GaussianNoise(std=1.0)), by_hand.context()
    outer, inner = tap(tmp_path / "out", epochs=1, batch_size=5), tap(tmp_path / "in")

    def guarded(message, where):
        return guard(message, where, lambda one, other: inner(one, other, app))

    reply = outer(messages[0], context, guarded)
    [left], [was] = read_captures(tmp_path / "out"), read_captures(tmp_path / "in")
    assert np.allclose(left.tensors()["weight"], by_hand.values(reply)["weight"])
    assert was.tensors()["weight"].tolist() == [[0.5, 0.5], [0.5, 0.5]]
    assert (left.manifest.name, left.manifest.local_steps, left.manifest.learning_rate) == ("node-7/1", 2, 0.1)


def test_the_tap_knows_the_run_s_configuration(by_hand, messages, tmp_path):
    context = by_hand.context()
    context.run_config = {"momentum": 0.5, "lr": 7.0}
    tap(tmp_path)(messages[0], context, by_hand.answering(by_hand.arrays(**AFTER)))
    [left] = read_captures(tmp_path)
    assert (left.manifest.momentum, left.manifest.learning_rate) == (0.5, 0.1)


def test_a_participant_keeps_the_examples_behind_its_updates_for_itself(by_hand, messages, tmp_path):
    path = keep_truth(tmp_path, messages[0], by_hand.context(), torch.ones(2, 1, 2, 2), torch.tensor([0, 1]))
    assert path.stat().st_mode & 0o777 == 0o600
    tap(tmp_path / "seen")(messages[0], by_hand.context(), by_hand.answering(by_hand.arrays(**AFTER)))
    [capture] = read_captures(tmp_path / "seen")
    assert read_truth(tmp_path, [capture.manifest.name])[capture.manifest.name].labels.tolist() == [0, 1]


def test_the_tap_knows_what_came_although_the_app_answers_in_its_place(by_hand, messages, tmp_path):
    def app(message, context):
        message.content["arrays"] = by_hand.arrays(**AFTER)
        return Message(message.content, reply_to=message)

    tap(tmp_path)(messages[0], by_hand.context(), app)
    [left] = read_captures(tmp_path)
    assert left.tensors()["weight"].tolist() == [[0.5, 0.5], [0.5, 0.5]]


def test_a_round_that_nobody_names_is_not_written_as_zero(by_hand, tmp_path):
    app = by_hand.answering(by_hand.arrays(**AFTER))
    for _ in range(3):
        message = by_hand.ask(by_hand.arrays(**BEFORE))
        del message.content["config"]["server-round"]
        tap(tmp_path)(message, by_hand.context(), app)
    assert [capture.manifest.round for capture in read_captures(tmp_path)] == [1, 2, 3]
    with pytest.raises(InvalidValue, match="A train message must name its round"):
        keep_truth(tmp_path / "truth", message, by_hand.context(), torch.ones(1, 1, 2, 2), torch.tensor([0]))
    assert not (tmp_path / "truth").exists()


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
        ({}, {}, {"dataset_size": 10}),
        ({"lr": True, "batch-size": "many", "momentum": 7}, {}, {"dataset_size": 10}),
        (
            {"learning_rate": 0.5, "local-epochs": 3, "batch_size": 4},
            {},
            {"learning_rate": 0.5, "batch_size": 4, "epochs": 3, "dataset_size": 10, "local_steps": 9, "examples": 30},
        ),
        (
            {"lr": 0.5},
            {"learning_rate": 0.1, "local_steps": 2, "examples": 8},
            {"learning_rate": 0.1, "local_steps": 2, "examples": 8, "dataset_size": 10},
        ),
        (
            {"local-epochs": 1, "batch-size": 32},
            {},
            {"batch_size": 10, "epochs": 1, "dataset_size": 10, "local_steps": 1, "examples": 10},
        ),
        ({"local-epochs": 2}, {}, {"epochs": 2, "dataset_size": 10, "examples": 20}),
        (
            {"local-steps": 3, "batch-size": 4},
            {},
            {"batch_size": 4, "local_steps": 3, "dataset_size": 10, "examples": 10},
        ),
    ],
)
def test_facts_come_from_who_tells_and_then_from_the_configuration(config, known, expected):
    assert facts_of([config], 10, known) == expected


def test_telemetry_is_off_unless_a_user_wants_otherwise():
    environment = {"RAY_USAGE_STATS_ENABLED": "1"}
    disable_telemetry(environment)
    assert environment == {**TELEMETRY_OFF, "RAY_USAGE_STATS_ENABLED": "1"}
