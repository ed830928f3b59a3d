"""Defence memory: what a defence keeps on a node between messages, in its context or in a folder of its owner."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

from flwr.app import ConfigRecord, Context

from leaktight.core.archive import pack, read_archive, unpack
from leaktight.core.defence import Defence, bind_key
from leaktight.core.errors import InvalidValue, LeaktightError
from leaktight.core.local import Local, Memory, spending
from leaktight.core.private import lock_file, private_folder, reason, write_private
from leaktight.core.scenario import flatten, unflatten
from leaktight.core.secure import SecretKey

_log = logging.getLogger(__name__)
_STATE = "state"
_warned: set[str] = set()
"""The defences whose owner was warned that their budget ends with the process."""


@dataclasses.dataclass(frozen=True)
class DefenceState:
    """What a node remembers of a defence.

    Args:
        memory: what the defence keeps between messages.
        notes: its numbers, such as an epsilon.
        messages: how many messages were begun.
        run: the run of the last one; None before the first.
    """

    memory: Memory = dataclasses.field(default_factory=dict, repr=False)
    notes: dict[str, float] = dataclasses.field(default_factory=dict)
    messages: int = 0
    run: int | None = None

    def to_bytes(self) -> bytes:
        """Return an archive."""
        return pack(flatten(self.memory), {"notes": self.notes, "messages": self.messages, "run": self.run})

    @classmethod
    def of(cls, values: dict[str, Any], about: dict[str, Any]) -> DefenceState:
        """Return what an archive holds."""
        return cls(unflatten(values), dict(about["notes"]), int(about["messages"]), about["run"])


class MemoryStore(Protocol):
    """Where a defence's memory is."""

    def read(self) -> DefenceState:
        """Return what is there."""

    def write(self, state: DefenceState) -> None:
        """Keep it."""

    def lock(self) -> contextlib.AbstractContextManager[object]:
        """Keep other processes out, inside the block."""


@dataclasses.dataclass(frozen=True)
class ContextStore:
    """Memory in the state of a node's context: it ends with the process, or with the run."""

    context: Context
    defence: Defence

    def read(self) -> DefenceState:
        """Return what the context remembers."""
        record = self.context.state.config_records.get(_name(self.defence))
        if record is None:
            return DefenceState()
        content = record.get(_STATE)
        with _one_sentence("in the node's context"):
            return DefenceState.of(*unpack(content if isinstance(content, bytes) else b""))

    def write(self, state: DefenceState) -> None:
        """Keep it in the context."""
        self.context.state[_name(self.defence)] = ConfigRecord({_STATE: state.to_bytes()})

    def lock(self) -> contextlib.AbstractContextManager[object]:
        """Nobody else has this context."""
        return contextlib.nullcontext()


@dataclasses.dataclass(frozen=True)
class FolderStore:
    """Memory in a folder of the node's own, which outlasts processes and runs.

    Args:
        context: the node's context.
        defence: whose memory it is.
        folder: for its owner alone.
    """

    context: Context
    defence: Defence
    folder: Path

    @property
    def path(self) -> Path:
        """The file of this defence."""
        return self.folder / f"{_name(self.defence)}{self._ending}"

    @property
    def _ending(self) -> str:
        # Nodes of one simulation share a machine, and so the folder; a node's number changes when it is started anew.
        return f".{self.context.node_config.get('partition-id', 'node')}.safetensors"

    def read(self) -> DefenceState:
        """Return what the file holds."""
        if not self.path.exists():
            self._require_no_other_account()
            return DefenceState()
        with _one_sentence(f"in `{self.path}`"):
            return DefenceState.of(*read_archive(self.path))

    def write(self, state: DefenceState) -> None:
        """Keep it in the file."""
        write_private(self.path, state.to_bytes())

    def lock(self) -> contextlib.AbstractContextManager[object]:
        """Wait until no other process is at it."""
        return lock_file(self.folder / "lock", wait=True)

    def _require_no_other_account(self) -> None:
        """Refuse to begin an account beside another: what two defences spend adds up, and neither would say so."""
        for path in sorted(self.folder.glob(f"leaktight.*{self._ending}")):
            with _one_sentence(f"in `{path}`"):
                values, _ = read_archive(path)
            if spending(unflatten(values)):
                raise InvalidValue(
                    f"The folder `{self.folder}` holds what was spent under other settings, in `{path.name}`. "
                    "What both spend adds up, and is not added up here: keep the settings, or name another folder and "
                    "add the two."
                )


def store_of(context: Context, defence: Defence, folder: Path | None) -> MemoryStore:
    """Return where a defence's memory is on a node."""
    return ContextStore(context, defence) if folder is None else FolderStore(context, defence, folder)


def begins_run(context: Context, defence: Defence, folder: Path | None = None) -> bool:
    """Return whether a node has not yet begun a message under this defence in its run.

    Args:
        context: the node's context.
        defence: whose memory is looked at.
        folder: as for `load_memory`.
    """
    return store_of(context, defence, folder).read().run != context.run_id


def load_memory(context: Context, defence: Defence, folder: Path | None = None) -> Local:
    """Return what a node remembers of a defence, ready for its next message.

    Every message has a new key of 256 secret bits, which is kept nowhere. So no noise is ever drawn twice: not by two
    nodes, not when a message fails, and not by a node whose memory was lost or put back.

    Args:
        context: the node's context.
        defence: whose memory it is.
        folder: where memory outlasts the process; None keeps it in the context alone.
    """
    store = store_of(context, defence, folder)
    with store.lock():
        state = store.read()
        # Residuals and private heads belong to a run; what was spent on the examples was spent.
        memory = state.memory if state.run in (None, context.run_id) else spending(state.memory)
        store.write(dataclasses.replace(state, memory=memory, messages=state.messages + 1, run=context.run_id))
    party = f"node-{context.node_id}"
    local = Local(party, 0, memory=memory, notes=dict(state.notes), key=bind_key(SecretKey.new(), party, defence))
    local.begin(state.messages)
    return local


def save_memory(context: Context, defence: Defence, local: Local, folder: Path | None = None) -> None:
    """Keep memory and notes for the next message.

    Args:
        context: the node's context.
        defence: whose memory it is.
        local: what `load_memory` returned, after the message.
        folder: as for `load_memory`.

    Raises:
        InvalidValue: it was loaded again meanwhile; what one of the two spent would be forgotten.
    """
    store = store_of(context, defence, folder)
    with store.lock():
        if store.read().messages != local.round + 1:
            raise InvalidValue(
                f"A node must finish one message under {defence.kind} before it begins another. "
                "Got two at once; use one after the other."
            )
        store.write(DefenceState(local.memory, local.notes, local.round + 1, context.run_id))
    if folder is None and spending(local.memory) and defence.key not in _warned:
        _warned.add(defence.key)
        _log.warning(
            "The budget of %s is counted in the node's context and ends with it. "
            "Name a folder, `state=PATH`, to count over restarts and runs.",
            defence.kind,
        )


def notes_of(context: Context, defence: Defence, state: str | Path | None = None) -> dict[str, float]:
    """Return what a defence noted on a node so far, such as the epsilon that it has spent.

    Args:
        context: the node's context.
        defence: the defence, as it was given to `protect` or `defend_training`.
        state: the folder that was given to them.
    """
    return store_of(context, defence, None if state is None else Path(state).expanduser()).read().notes


def make_state_folder(state: str | Path | None) -> Path | None:
    """Return the folder that a user named, made for its owner alone."""
    return None if state is None else private_folder(Path(state).expanduser())


def _name(defence: Defence) -> str:
    return f"leaktight.{defence.kind}.{defence.key}"


@contextlib.contextmanager
def _one_sentence(where: str) -> Iterator[None]:
    """Turn whatever goes wrong with a state into one sentence."""
    try:
        yield
    except OSError as error:
        raise InvalidValue(f"The state of leaktight {where} cannot be read: {reason(error)}. Bring it back.") from error
    except (LeaktightError, KeyError, TypeError, ValueError) as error:
        raise InvalidValue(
            f"The state of leaktight {where} must be as it was written. It is damaged; restore it, "
            "or remove it and count its budget as spent."
        ) from error
