"""Memory: what a defence keeps on a node between messages, in the node's context or in a folder that its owner names. It never leaves."""

from __future__ import annotations

import contextlib
import fcntl
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from flwr.app import ConfigRecord, Context

from leaktight.core.archive import pack, unpack
from leaktight.core.defence import Defence, bind_key
from leaktight.core.errors import InvalidValue, LeaktightError
from leaktight.core.local import Local, Memory, spent_in
from leaktight.core.private import private_file, private_folder, reason, write_private
from leaktight.core.scenario import flat, nested
from leaktight.core.secure import SecretKey

_log = logging.getLogger(__name__)
_STATE = "state"
_told: set[str] = set()
"""The defences whose owner was told that their budget ends with the process."""


def recall(context: Context, defence: Defence, folder: Path | None = None) -> Local:
    """Return what a node remembers of a defence, ready for its next message.

    Every message has a new key of 256 secret bits, which is kept nowhere. So no noise is ever drawn twice: not by two nodes, not when a
    message fails, and not by a node whose memory was lost or put back.

    Args:
        context: the node's context.
        defence: whose memory it is.
        folder: where memory outlasts the process; None keeps it in the context alone.
    """
    with _locked(folder):
        kept = _read(context, defence, folder)
        memory, about = ({}, {}) if kept is None else kept
        if about.get("run", context.run_id) != context.run_id:
            # Residuals and private heads belong to a run; what was spent on the examples was spent.
            memory = spent_in(memory)
        party = f"node-{context.node_id}"
        key = bind_key(SecretKey.new(), party, defence)
        local = Local(party, 0, memory=memory, notes=dict(about.get("notes", {})), key=key)
        local.begin(int(about.get("messages", 0)))
        _write(context, defence, folder, memory, {**about, "messages": local.round + 1})
    return local


def remember(context: Context, defence: Defence, local: Local, folder: Path | None = None) -> None:
    """Keep memory and notes for the next message.

    Args:
        context: the node's context.
        defence: whose memory it is.
        local: what `recall` returned, after the message.
        folder: as for `recall`.

    Raises:
        InvalidValue: it was recalled again meanwhile; what one of the two spent would be forgotten.
    """
    with _locked(folder):
        kept = _read(context, defence, folder)
        if kept is None or kept[1]["messages"] != local.round + 1:
            raise InvalidValue(
                f"A node must finish one message under {defence.kind} before it begins another. Got two at once; use one after the other."
            )
        about = {"messages": local.round + 1, "run": context.run_id, "notes": local.notes}
        _write(context, defence, folder, local.memory, about)
    if folder is None and spent_in(local.memory) and defence.key not in _told:
        _told.add(defence.key)
        _log.warning(
            "The budget of %s is counted in the node's context and ends with it. Name a folder, `state=PATH`, to count over restarts and runs.",
            defence.kind,
        )


def notes_of(context: Context, defence: Defence, state: str | Path | None = None) -> dict[str, float]:
    """Return what a defence noted on a node so far, such as the epsilon that it has spent.

    Say a budget with `core.budget.budgets_of`: epsilon means nothing without its delta and without what it rests on.

    Args:
        context: the node's context.
        defence: the defence, as it was given to `protect` or `defended`.
        state: the folder that was given to them.
    """
    kept = _read(context, defence, folder_of(state))
    return {} if kept is None else dict(kept[1].get("notes", {}))


def folder_of(state: str | Path | None) -> Path | None:
    """Return the folder that a person named, made for its owner alone."""
    return None if state is None else private_folder(Path(state).expanduser())


def _name(defence: Defence) -> str:
    return f"leaktight.{defence.kind}.{defence.key}"


def _path(context: Context, defence: Defence, folder: Path) -> Path:
    # Nodes of one simulation share a machine, and so the folder; a node's number changes when it is started anew.
    return folder / f"{_name(defence)}.{context.node_config.get('partition-id', 'node')}.safetensors"


def _read(context: Context, defence: Defence, folder: Path | None) -> tuple[Memory, dict[str, Any]] | None:
    if folder is None:
        record = context.state.config_records.get(_name(defence))
        content, where = (None if record is None else record.get(_STATE)), "in the node's context"
    else:
        path = _path(context, defence, folder)
        content, where = (path.read_bytes() if path.is_file() else None), f"in `{path}`"
    if content is None and (folder is not None or record is None):
        return None
    try:
        values, about = unpack(content) if isinstance(content, bytes) else _damaged()
    except LeaktightError as error:
        raise InvalidValue(
            f"What leaktight keeps {where} must be as it was left. It was changed; bring it back, or move it away and count its budget as spent."
        ) from error
    return nested(values), about


def _damaged() -> tuple[dict[str, Any], dict[str, Any]]:
    raise LeaktightError("It is not bytes.")


def _write(context: Context, defence: Defence, folder: Path | None, memory: Memory, about: dict[str, Any]) -> None:
    content = pack(flat(memory), about)
    if folder is None:
        context.state[_name(defence)] = ConfigRecord({_STATE: content})
    else:
        write_private(_path(context, defence, folder), content)


@contextlib.contextmanager
def _locked(folder: Path | None) -> Iterator[None]:
    """Keep other processes out of a folder."""
    if folder is None:
        yield
        return
    path = folder / "lock"
    private_file(path)
    try:
        with path.open("rb+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
    except OSError as error:
        raise InvalidValue(f"The folder `{folder}` cannot be used: {reason(error)}. Name another one.") from error
