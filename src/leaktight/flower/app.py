"""Our parties as a Flower app.

The honest participant is its ClientApp, the server of a joint training run its ServerApp.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import torch
from flwr.app import Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp

from leaktight.core.errors import InvalidValue, LeaktightError
from leaktight.core.private import write_private
from leaktight.core.secure import SecretKey
from leaktight.data import from_text
from leaktight.flower.codec import content_of, fault_of, messages_of
from leaktight.flower.node_state import SIMULATION, NodeState, digest_message, load_state, save_state
from leaktight.flower.remote import Nodes, greeting
from leaktight.learning.client import Client
from leaktight.learning.joint import JointTraining, Round, write_trained

FAILURE_FILE, PROGRESS_FILE = "failure.json", "progress.json"

client_app = ClientApp()
server_app = ServerApp()


@client_app.query("introduce")
def introduce(message: Message, context: Context) -> Message:
    """Say which participant this node is."""
    return _reply(message, lambda: content_of(greeting(_name(context))))


@client_app.train()
def respond(message: Message, context: Context) -> Message:
    """Answer the parameters of a round, as the honest participant does, and remember what it must for the next.

    With its last answer it reveals what the defence reveals at the end: one message less, and each takes seconds.
    """

    def answer() -> RecordDict:
        [asked], name = messages_of(message.content), _name(context)
        state, question = load_state(context, name), digest_message(asked)
        sent = state.repeat(asked.round, name, question)
        if sent is None:
            training = _training(str(context.run_config["training"]))
            party = _party(context, training, state)
            update = party.respond(asked)
            # Rounds come one after the other, so nobody can make it believe that an early one is the last.
            reveal = party.close() if asked.round == training.scenario.rounds - 1 else None
            sent = (update, reveal) if reveal else (update,)
            after = NodeState(asked.round, party.local.memory, party.local.notes, question, sent, state.runs)
            save_state(context, name, after)
        return content_of(*sent)

    return _reply(message, answer)


@server_app.main()
def main(grid: Grid, context: Context) -> None:
    """Lead the training run; write the model, or the sentence that says why there is none."""
    torch.set_num_threads(1)
    config = context.run_config
    out, training = Path(str(config["out"])), _training(str(config["training"]))
    try:
        nodes = Nodes(grid, training.scenario.participants, float(config["patience"]))

        def on_round(round: Round) -> None:
            progress = {"played": round.played, "utility": [reading.to_dict() for reading in round.readings]}
            write_private(out / PROGRESS_FILE, json.dumps(progress).encode())

        write_trained(out, training, training.lead(nodes.parties(), nodes.gather, on_round), backend="flower")
    except LeaktightError as error:
        write_private(out / FAILURE_FILE, json.dumps({"reason": str(error)}).encode())
        raise


def _reply(message: Message, make: Callable[[], RecordDict]) -> Message:
    torch.set_num_threads(1)
    try:
        return Message(make(), reply_to=message)
    except LeaktightError as error:
        return Message(fault_of(error), reply_to=message)


def _party(context: Context, training: JointTraining, state: NodeState) -> Client:
    own = context.node_config.get("data")
    # The node decides this itself: whoever leads the training run must not be able to make it draw what others can
    # redraw.
    key = None if os.environ.get(SIMULATION) == "1" else SecretKey.new()
    party = training.party(_number(context), state.memory, from_text(str(own)) if own else None, key)
    party.local.notes.update(state.notes)
    return party


def _name(context: Context) -> str:
    return f"client-{_number(context)}"


def _number(context: Context) -> int:
    number = context.node_config.get("partition-id")
    if not isinstance(number, int) or isinstance(number, bool) or number < 0:
        raise InvalidValue(
            f"The `partition-id` of a node must be a whole number from 0. Got {number!r} instead; set it with "
            "`--node-config`."
        )
    return number


@lru_cache(maxsize=1)
def _training(text: str) -> JointTraining:
    """Read what was agreed, once in a process: its data and its model are read once, too."""
    return JointTraining.model_validate(json.loads(text))
