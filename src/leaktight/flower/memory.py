"""Memory: a participant's Local in the context of its node, which outlasts messages and never leaves."""

from __future__ import annotations

import secrets

from flwr.app import ConfigRecord, Context

from leaktight.core.archive import pack, unpack
from leaktight.core.defence import Defence
from leaktight.core.errors import InvalidValue, LeaktightError
from leaktight.core.local import Local
from leaktight.core.random import seed_of
from leaktight.core.scenario import flat, nested

_STATE = "state"


def recall(context: Context, defence: Defence, seed: int | None) -> Local:
    """Return what a node remembers of a defence, ready for its next message.

    Every message has streams of its own, by a counter that is kept and moved on at once, so that no noise is drawn twice even if the
    message fails. Streams also follow from the run, the node and the defence: two nodes, or two defences on one, never share noise.

    Args:
        context: the node's context.
        defence: whose memory it is.
        seed: what its streams derive from; None draws a secret seed on the node, once, and keeps it there.
    """
    kept = context.state.config_records.get(_name(defence))
    values, about = unpack(_bytes(kept)) if kept is not None else ({}, {})
    own = about.get(
        "seed", seed_of(secrets.randbits(63) if seed is None else seed, context.run_id, context.node_id, defence.key)
    )
    local = Local(f"node-{context.node_id}", own, memory=nested(values), notes=dict(about.get("notes", {})))
    local.begin(int(about.get("messages", 0)))
    _write(context, defence, pack(values, {**about, "seed": own, "messages": local.round + 1}))
    return local


def remember(context: Context, defence: Defence, local: Local) -> None:
    """Keep memory and notes for the next message.

    Args:
        context: the node's context.
        defence: whose memory it is.
        local: what `recall` returned, after the message.

    Raises:
        InvalidValue: it was recalled again meanwhile; what one of the two spent would be forgotten, and its noise drawn again.
    """
    kept = context.state.config_records.get(_name(defence))
    if kept is None or unpack(_bytes(kept))[1]["messages"] != local.round + 1:
        raise InvalidValue(
            f"A node must finish one message under {defence.kind} before it begins another. Got two at once; use one after the other."
        )
    about = {"seed": local.seed, "messages": local.round + 1, "notes": local.notes}
    _write(context, defence, pack(flat(local.memory), about))


def notes_of(context: Context, defence: Defence) -> dict[str, float]:
    """Return what a defence noted on a node so far, such as the epsilon that it has spent.

    Say a budget with `core.budget.budgets_of`: epsilon means nothing without its delta and without what it rests on.

    Args:
        context: the node's context.
        defence: the defence, as it was given to `protect` or `defended`.
    """
    kept = context.state.config_records.get(_name(defence))
    return dict(unpack(_bytes(kept))[1].get("notes", {})) if kept is not None else {}


def _name(defence: Defence) -> str:
    return f"leaktight.{defence.kind}.{defence.key}"


def _write(context: Context, defence: Defence, content: bytes) -> None:
    context.state[_name(defence)] = ConfigRecord({_STATE: content})


def _bytes(record: ConfigRecord) -> bytes:
    content = record.get(_STATE)
    if not isinstance(content, bytes):
        raise InvalidValue("The state that leaktight keeps in the node's context must be bytes. Leave it as it is.")
    try:
        unpack(content)
    except LeaktightError as error:
        raise InvalidValue("The state that leaktight keeps in the node's context was changed. Start the run anew.") from error
    return content
