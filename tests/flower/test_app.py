"""Our parties as a Flower app, on a grid in this process: contexts are all that lasts between messages."""

import json

import pytest
import torch
from flwr.app import ConfigRecord, Context, Error, Message, RecordDict
from flwr.common.constant import ErrorCode
from flwr.supercore.task_identity import TaskIdentity
from safetensors.torch import load_file

from leaktight.core.defence import Undefended
from leaktight.core.errors import LeaktightError
from leaktight.core.message import Kind
from leaktight.core.message import Message as Sent
from leaktight.data import Digits
from leaktight.defences import DPSGD, ClassKeys, GaussianNoise, Polarization, TopK
from leaktight.flower.app import FAILURE_FILE, PROGRESS_FILE, client_app, main
from leaktight.flower.codec import content_of, messages_of
from leaktight.flower.node_state import SIMULATION, NodeState, decode, encode
from leaktight.flower.remote import FAILURES, Nodes
from leaktight.learning.federated import Federated
from leaktight.learning.joint import CURVE_FILE, MODEL_FILE, JointTraining
from leaktight.learning.protocol import FedAvg, FedSGD, RoundRobin
from leaktight.models import MLP


class Nodeless:
    """A grid whose nodes are made anew for every message; some of what they answer gets lost."""

    def __init__(self, training, nodes=3, *, lose=(), forget=(), folder=None, numbers=None, run=1):
        self.run_config = {"training": json.dumps(training.to_dict())}
        self.numbers = dict(enumerate(numbers or range(nodes), start=10))
        self.states = {node: RecordDict() for node in self.numbers}
        self.lose, self.forget, self.folder, self.run = set(lose), set(forget), folder, run
        self.replies, self.count, self.handled = {}, 0, []

    def get_node_ids(self):
        return list(self.numbers)

    def push_messages(self, messages):
        identities = []
        for message in messages:
            self.count += 1
            identity = str(self.count)
            message.metadata.__dict__["_message_id"] = identity
            identities.append(identity)
            reply = self.handle(message)
            if reply is not None:
                self.replies[identity] = reply
        return identities

    def pull_messages(self, identities):
        return [self.replies.pop(one) for one in identities if one in self.replies]

    def send_and_receive(self, messages, *, timeout=None):
        return self.pull_messages(self.push_messages(messages))

    def handle(self, message):
        node = message.metadata.dst_node_id
        settings = {"partition-id": self.numbers[node]}
        if self.folder:
            settings["state-folder"] = str(self.folder / str(node))
        context = Context(
            run_id=self.run, node_id=node, node_config=settings, state=self.states[node], run_config=self.run_config
        )
        self.handled.append((message.metadata.message_type, self.numbers[node]))
        reply = client_app(message, context)
        self.states[node] = RecordDict() if self.count in self.forget else context.state
        reply.metadata.__dict__["_src_node_id"] = node
        if self.count in self.lose:
            return Message(Error(code=1, reason="gone"), reply_to=message)
        return reply


def training(defence=None, protocol=None, rounds=2):
    scenario = Federated(
        data=Digits(),
        model=MLP(hidden=(4,)),
        rounds=rounds,
        participants=3,
        batch_size=8,
        protocol=protocol or FedAvg(local_steps=2),
    )
    return JointTraining(scenario=scenario, defence=defence or Undefended(), seed=2)


def led(grid, one, **settings):
    nodes = Nodes(grid, 3, **{"patience": 0.05, **settings})
    return one.lead(nodes.parties(), nodes.gather)


def same(result, wanted):
    return result.utility == wanted.utility and all(
        torch.equal(result.parameters[n], t) for n, t in wanted.parameters.items()
    )


CASES = {
    "fedsgd": (Undefended(), FedSGD()),
    "residuals": (TopK(), FedAvg(local_steps=2)),
    "private heads": (Polarization(), FedAvg(local_steps=2)),
    "a budget": (DPSGD(), FedSGD()),
    "turns and own parameters": (Undefended(), RoundRobin(order="random", download=0.5, local_steps=2)),
}


@pytest.fixture(autouse=True)
def simulated(monkeypatch):
    monkeypatch.setenv(SIMULATION, "1")


@pytest.fixture(autouse=True)
def hasty(monkeypatch):
    monkeypatch.setattr("leaktight.flower.remote._PAUSE", 0.0)
    monkeypatch.setattr("leaktight.flower.remote._RETRY", 0.0)
    for name, value in (("_run_id", 1), ("_node_id", 1), ("_task_id", 1)):
        monkeypatch.setattr(TaskIdentity, name, value)


@pytest.mark.parametrize("case", CASES)
def test_the_model_is_that_of_the_local_backend_to_the_last_bit(case):
    one = training(*CASES[case])
    assert same(led(Nodeless(one), one), one.lead(one.parties()))


def test_what_is_revealed_comes_with_the_last_answer():
    one = training(ClassKeys())
    grid = Nodeless(one)
    result = led(grid, one)
    assert same(result, one.lead(one.parties()))
    assert [each.readings for each in result.curve] == [(), ()]
    assert len(grid.handled) == 3 + 2 * 3


def test_a_lost_answer_is_asked_for_again_and_applied_once():
    one = training(TopK())
    # The first three introduce, the next three answer round 0.
    grid = Nodeless(one, lose={5, 9})
    assert same(led(grid, one), one.lead(one.parties()))
    assert [kind for kind, _ in grid.handled].count("train") == 8


def test_a_participant_that_always_fails_is_named_soon():
    one = training()
    grid = Nodeless(one, lose=range(4, 100))
    with pytest.raises(
        LeaktightError,
        match=rf"^client-0 failed {FAILURES} times in a row: gone. Look at the logs in `flower-logs`, and train again.$",
    ):
        led(grid, one)
    assert grid.count < 20


def test_a_participant_whose_node_is_away_for_long_is_waited_for():
    one = training()
    grid, away = Nodeless(one), iter(range(2 * FAILURES))
    handle = grid.handle

    def unavailable(message):
        reply = handle(message)
        gone = grid.count > 3 and next(away, None) is not None
        return Message(Error(code=ErrorCode.NODE_UNAVAILABLE, reason="away"), reply_to=message) if gone else reply

    grid.handle = unavailable
    assert same(led(grid, one), one.lead(one.parties()))
    # What cannot be sent is sent again soon, too.
    refused = iter(range(5))
    grid = Nodeless(one)
    push = grid.push_messages
    grid.push_messages = lambda messages: (
        [None] if grid.count > 3 and next(refused, None) is not None else push(messages)
    )
    assert same(led(grid, one, patience=100), one.lead(one.parties()))


def test_a_node_started_anew_goes_on_from_its_own_folder(tmp_path):
    one = training(TopK(), rounds=3)
    grid = Nodeless(one, forget={5}, folder=tmp_path)
    assert same(led(grid, one), one.lead(one.parties()))
    kept = sorted(path.name for path in tmp_path.rglob("*.safetensors"))
    assert kept == [f"1-client-{number}.safetensors" for number in range(3)]
    assert {path.stat().st_mode & 0o777 for path in tmp_path.rglob("*.safetensors")} == {0o600}


def test_a_node_started_anew_without_a_folder_ends_the_training():
    one = training(TopK())
    with pytest.raises(LeaktightError, match=r"client-1 was asked for round 1 and remembers none before it"):
        led(Nodeless(one, forget={5}), one)


def test_two_nodes_that_are_the_same_participant_end_the_training():
    one = training()
    with pytest.raises(
        LeaktightError, match=r"Two nodes say that they are client-0. Give each node a `partition-id` of its own"
    ):
        led(Nodeless(one, numbers=[0, 0, 2]), one)


def test_a_node_without_a_number_says_so():
    one = training()
    with pytest.raises(
        LeaktightError, match=r"The `partition-id` of a node must be a whole number from 0. Got 'one' instead"
    ):
        led(Nodeless(one, numbers=[0, "one", 2]), one)


def test_participants_that_never_come_are_named():
    one = training()
    with pytest.raises(
        LeaktightError, match=r"The training run needs 3 participants. Only 2 came: client-0, client-1."
    ):
        led(Nodeless(one, 2), one, attempts=1)


def test_a_participant_that_never_answers_is_named():
    one = training()
    grid = Nodeless(one)
    handle = grid.handle
    grid.handle = lambda message: handle(message) if grid.count < 5 else None
    with pytest.raises(LeaktightError, match=r"No answer came from client-1, client-2 for 0.2 seconds"):
        led(grid, one, patience=0.1, attempts=2)


def test_nothing_private_is_in_what_a_node_sends():
    one = training(Polarization())
    grid = Nodeless(one)
    contents = []
    handle = grid.handle
    grid.handle = lambda message: contents.append(handle(message)) or contents[-1]
    led(grid, one)
    secrets = {name for state in grid.states.values() for name in state}
    assert secrets == {"leaktight.party"}
    sent = {name for reply in contents for record in reply.content.array_records.values() for name in record}
    assert sent == set(one.task.public_parameters())
    assert not secrets & {name for reply in contents for name in reply.content}


def test_the_server_writes_the_model_or_says_why_there_is_none(tmp_path):
    one = training()
    config = {"training": json.dumps(one.to_dict()), "out": str(tmp_path), "patience": 0.1}
    context = Context(run_id=1, node_id=1, node_config={}, state=RecordDict(), run_config=config)
    main(Nodeless(one), context)
    assert json.loads((tmp_path / CURVE_FILE).read_text())["backend"] == "flower"
    assert json.loads((tmp_path / PROGRESS_FILE).read_text())["played"] == 2
    wanted = one.lead(one.parties()).parameters
    assert all(torch.equal(load_file(tmp_path / MODEL_FILE)[name], tensor) for name, tensor in wanted.items())
    with pytest.raises(LeaktightError):
        main(Nodeless(one, numbers=[0, 0, 2]), context)
    assert "Two nodes" in json.loads((tmp_path / FAILURE_FILE).read_text())["reason"]


def test_a_strange_message_is_answered_with_a_sentence():
    one = training()
    grid = Nodeless(one)
    message = Message(RecordDict({"config": ConfigRecord({"lr": 0.1})}), 10, "train")
    [identity] = grid.push_messages([message])
    assert "must be a message of Leaktight" in str(grid.replies[identity].content)


def test_another_question_for_a_round_that_was_answered_gets_no_answer():
    """The noise of a round is drawn again when it is asked for again: two answers would be free of it."""
    one = training(GaussianNoise(std=0.1))
    grid = Nodeless(one)
    parameters = one.task.public_parameters()

    def said(tensors):
        asked = Sent(Kind.PARAMETERS, "server", "client-0", 0, tensors)
        [identity] = grid.push_messages([Message(content_of(asked), 10, "train")])
        return grid.replies[identity].content

    [first], [again] = messages_of(said(parameters)), messages_of(said(parameters))
    assert all(torch.equal(again.tensors[name], tensor) for name, tensor in first.tensors.items())
    with pytest.raises(LeaktightError, match=r"client-0 must be asked the same when it is asked for round 0 again"):
        messages_of(said({name: tensor + 1 for name, tensor in parameters.items()}))


def test_a_node_that_is_no_participant_ends_the_training():
    one = training()
    with pytest.raises(
        LeaktightError, match=r"A node must be one of client-0 to client-2. Got 'client-7' instead; give each"
    ):
        led(Nodeless(one, numbers=[0, 7, 2]), one)


def test_what_is_another_ones_cannot_be_revealed():
    one = training(ClassKeys(), rounds=1)
    grid = Nodeless(one)
    handle = grid.handle

    def swapped(message):
        reply = handle(message)
        for record in reply.content.config_records.values():
            record["message"] = record["message"].replace(
                '"reveal", "sender": "client-1"', '"reveal", "sender": "client-0"'
            )
        return reply

    nodes = Nodes(grid, 3, patience=0.05)
    parties = nodes.parties()
    grid.handle = swapped
    with pytest.raises(LeaktightError, match="client-1 must reveal what is its own"):
        one.lead(parties, nodes.gather)


@pytest.mark.parametrize("defence", [GaussianNoise(std=0.1), Polarization(), ClassKeys()])
def test_a_deployed_node_draws_what_nobody_can_draw_again(defence, monkeypatch):
    """The seed is known to all: noise, private heads and class keys must not follow from it."""
    one = training(defence, rounds=1)
    seeded = led(Nodeless(one), one)
    monkeypatch.delenv(SIMULATION)
    first, second = led(Nodeless(one), one), led(Nodeless(one), one)
    for name in seeded.parameters:
        for left, right in ((seeded, first), (seeded, second), (first, second)):
            assert not torch.equal(left.parameters[name], right.parameters[name]), name


@pytest.mark.parametrize("value", ["0", "", "yes"])
def test_only_one_word_makes_a_simulation(value, monkeypatch):
    monkeypatch.setenv(SIMULATION, value)
    one = training(GaussianNoise(std=0.1), rounds=1)
    assert not same(led(Nodeless(one), one), one.lead(one.parties()))


def test_a_node_adds_up_what_it_spends_over_runs(tmp_path):
    """Whoever leads must not be able to have it forget by starting anew."""
    one, spent = training(DPSGD(), FedSGD(), rounds=2), []
    for run in (1, 2, 3):
        grid = Nodeless(one, folder=tmp_path, run=run)
        led(grid, one)
        [kept] = (tmp_path / "10").glob("*.safetensors")
        spent.append(decode(kept.read_bytes()).notes["dp_sgd.epsilon"])
    assert spent[0] < spent[1] < spent[2]


def test_a_deployed_node_sends_its_answer_again_byte_for_byte(monkeypatch):
    monkeypatch.delenv(SIMULATION)
    one = training(GaussianNoise(std=0.1))
    grid = Nodeless(one)
    content = content_of(Sent(Kind.PARAMETERS, "server", "client-0", 0, one.task.public_parameters()))
    replies = []
    for _ in range(2):
        [identity] = grid.push_messages([Message(content, 10, "train")])
        replies.append(messages_of(grid.replies[identity].content)[0])
    assert all(torch.equal(replies[1].tensors[name], tensor) for name, tensor in replies[0].tensors.items())


def test_states_survive_their_archive():
    answer = Sent(Kind.UPDATE, "client-0", "server", 3, {"a": torch.ones(2), "b": torch.tensor(3.0)}, {"examples": 2.0})
    state = NodeState(3, {"a": {"b": torch.ones(2)}, "count": 2}, {"epsilon": 1.0}, "a1", (answer,))
    restored = decode(encode(state))
    assert (restored.round, restored.notes, restored.asked) == (3, {"epsilon": 1.0}, "a1")
    assert restored.memory["count"] == 2
    assert torch.equal(restored.memory["a"]["b"], torch.ones(2))
    assert list(restored.answer[0].tensors) == ["a", "b"]
    assert str(restored.answer) == str(state.answer)
    with pytest.raises(LeaktightError, match=r"client-0 was asked for round 9 and remembers round 3 last"):
        restored.repeat(9, "client-0", "")
