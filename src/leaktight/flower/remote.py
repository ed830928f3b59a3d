"""Remote parties: what stands for the participants at the server, and carries messages to their nodes and back."""

from __future__ import annotations

import dataclasses
import time
from collections import Counter
from collections.abc import Sequence

from flwr.app import ConfigRecord, RecordDict
from flwr.app import Message as FlowerMessage
from flwr.common.constant import ErrorCode
from flwr.serverapp import Grid

from leaktight.core.errors import LeaktightError
from leaktight.core.message import Kind, Message
from leaktight.core.party import Party
from leaktight.flower.codec import content_of, messages_of, require_answer

INTRODUCE, RESPOND = "query.introduce", "train"
PATIENCE = 600.0
"""After how many seconds without an answer a message is sent again; a round is answered the same, and applied once."""
ATTEMPTS = 10
"""After so many times the patience a training run without an answer ends."""
FAILURES = 5
"""How often in a row a participant may fail to answer while its node is there."""
_PAUSE, _RETRY = 0.25, 3.0


@dataclasses.dataclass(frozen=True)
class Remote:
    """A participant on another node."""

    name: str
    nodes: Nodes

    def respond(self, message: Message) -> Message:
        """Hand it a message and wait for its answer."""
        [answer] = self.nodes.gather([self], [message])
        return answer

    def close(self) -> Message | None:
        """Return what it revealed with its last answer."""
        return self.nodes.revealed.get(self.name)


@dataclasses.dataclass
class Nodes:
    """The nodes of a run by the participants that are there.

    A node that is gone, or whose answer is lost, is sent its message again once it is back or after some time. Each
    node says which participant it is; two that are the same end the training run.

    Args:
        grid: what carries messages.
        participants: how many there must be.
        patience: after how many seconds without an answer a message is sent again.
        attempts: after how many times the patience the training run ends.
        revealed: what participants revealed with their last answers.
    """

    grid: Grid
    participants: int
    patience: float = PATIENCE
    attempts: int = ATTEMPTS
    revealed: dict[str, Message] = dataclasses.field(default_factory=dict)
    _places: dict[str, int] = dataclasses.field(default_factory=dict)

    def parties(self) -> list[Remote]:
        """Wait until all participants are there, and return them in order."""
        until = time.monotonic() + self.attempts * self.patience
        while len(self._places) < self.participants:
            self._meet()
            if time.monotonic() > until:
                raise LeaktightError(
                    f"The training run needs {self.participants} participants. "
                    f"Only {len(self._places)} came: {', '.join(self._places) or 'nobody'}."
                )
            time.sleep(_PAUSE)
        return [Remote(f"client-{number}", self) for number in range(self.participants)]

    def gather(self, parties: Sequence[Party], asks: Sequence[Message]) -> list[Message]:
        """Ask all at the same time; return their answers in order."""
        contents = {ask.receiver: content_of(ask) for ask in asks}
        replies = self.ask(RESPOND, contents)
        answers = []
        for party, ask in zip(parties, asks, strict=True):
            answer, *reveals = messages_of(replies[party.name])
            require_answer(answer, party.name, ask.round, ask.tensors)
            answers.append(answer)
            for message in reveals:
                if (message.kind, message.sender) != (Kind.REVEAL, party.name):
                    raise LeaktightError(
                        f"{party.name} must reveal what is its own with its last answer. Got something else."
                    )
                self.revealed[party.name] = message
        return answers

    def ask(self, what: str, contents: dict[str, RecordDict]) -> dict[str, RecordDict]:
        """Send each participant something; return what each answered."""
        out: dict[str, str] = {}
        due = dict.fromkeys(contents, 0.0)
        answers: dict[str, RecordDict] = {}
        failures: Counter[str] = Counter()
        until = time.monotonic() + self.attempts * self.patience
        while len(answers) < len(contents):
            now = time.monotonic()
            for name in [name for name in contents if name not in answers and due[name] <= now]:
                if due[name]:
                    self._meet()
                sent = self._send(what, name, contents[name])
                # Nothing can be sent to a node that is not there.
                due[name] = time.monotonic() + (self.patience if sent else _RETRY)
                out |= sent
            for reply in self.grid.pull_messages(list(out)):
                name = out.pop(reply.metadata.reply_to_message_id)
                if not reply.has_error():
                    answers.setdefault(name, reply.content)
                elif name not in answers:
                    failures[name] += reply.error.code != ErrorCode.NODE_UNAVAILABLE
                    if failures[name] >= FAILURES:
                        why = str(reply.error.reason).partition("\n")[0][:200].rstrip(".")
                        raise LeaktightError(
                            f"{name} failed {FAILURES} times in a row: {why}. "
                            "Look at the logs in `flower-logs`, and train again."
                        )
                    # Its node is gone, or its process ended: soon again, but not at once.
                    due[name] = min(due[name], time.monotonic() + _RETRY)
            if now > until:
                silent = ", ".join(name for name in contents if name not in answers)
                raise LeaktightError(
                    f"No answer came from {silent} for {self.attempts * self.patience:g} seconds. "
                    "Look at the logs in `flower-logs`, and train again."
                )
            time.sleep(_PAUSE)
        return answers

    def _send(self, what: str, name: str, content: RecordDict) -> dict[str, str]:
        message = FlowerMessage(content, self._places[name], what)
        return {identity: name for identity in self.grid.push_messages([message]) if identity}

    def _meet(self) -> None:
        """Ask nodes that are new which participant they are."""
        new = set(self.grid.get_node_ids()) - set(self._places.values())
        if not new:
            return
        messages = [
            FlowerMessage(RecordDict({"hello": ConfigRecord({"participants": self.participants})}), node, INTRODUCE)
            for node in new
        ]
        for reply in self.grid.send_and_receive(messages, timeout=self.patience):
            if reply.has_error():
                continue
            self._place(messages_of(reply.content)[0].sender, reply.metadata.src_node_id)

    def _place(self, name: str, node: int) -> None:
        if name not in {f"client-{number}" for number in range(self.participants)}:
            raise LeaktightError(
                f"A node must be one of client-0 to client-{self.participants - 1}. Got {name[:40]!r} instead; "
                "give each node a `partition-id` of its own, from 0."
            )
        former = self._places.get(name)
        if former is not None and former in set(self.grid.get_node_ids()):
            raise LeaktightError(
                f"Two nodes say that they are {name}. Give each node a `partition-id` of its own, from 0."
            )
        self._places[name] = node


def greeting(name: str) -> Message:
    """Return the message by which a node says which participant it is."""
    return Message(Kind.REVEAL, name, "server", -1, {})
