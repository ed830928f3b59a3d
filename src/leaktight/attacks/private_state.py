"""Private state: what a participant keeps secret under a defence, as unknowns of an attacker who knows the defence.

The attacker plays the participant: it lets the public defence make a task for a `Local` of its own. What is then secret
are the parameters that stay home and the floating tensors that the defence put into memory (codes, keys). Their values
are the attacker's own draw, where a search for the true ones starts.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from leaktight.core.defence import Defence
from leaktight.core.local import Local, Memory
from leaktight.core.message import Tensors
from leaktight.core.random import Stream
from leaktight.core.task import Task


@dataclasses.dataclass(frozen=True)
class PlayedParty:
    """A participant that the attacker plays itself.

    Args:
        task: the participant's own task, as the defence makes it.
        memory: what the defence keeps for it; the task's loss may read it at each call.
    """

    task: Task
    memory: Memory

    @classmethod
    def of(cls, defence: Defence, public: Task, examples: int, rng: Stream) -> PlayedParty:
        """Let a defence make the task of a participant who owns so many examples, with secrets drawn from a stream."""
        local = Local("attacker", seed=int(torch.randint(1 << 62, (), generator=rng)))
        local.now.examples = examples
        return cls(defence.on_task(public, local.scope("defence")), local.memory)

    def secrets(self) -> dict[str, Tensor]:
        """Return the parameters that stay home by name, and the floating tensors in memory by path."""
        private = {name: tensor for name, tensor in self.task.model.tensors().items() if self.task.wire(name) is None}
        return private | {path: place[name].detach() for path, place, name in _places(self.memory)}


def draw_secrets(
    defence: Defence, public: Task, examples: int, rows: int, rng: Stream
) -> tuple[PlayedParty, dict[str, Tensor]]:
    """Return a participant as a defence makes it, and the secrets of so many draws, stacked along the first dimension.

    Args:
        defence: what the participant does; public.
        public: the agreed task.
        examples: how many examples it owns.
        rows: how many draws.
        rng: where they come from.

    Example:
        >>> from leaktight.core.defence import Undefended
        >>> from leaktight.learning import classification
        >>> from leaktight.models import MLP
        >>> task = classification(MLP().build((4,), classes=3, seed=0), (4,), 3)
        >>> draw_secrets(Undefended(), task, examples=1, rows=2, rng=torch.Generator())[1]
        {}
    """
    played = PlayedParty.of(defence, public, examples, rng)
    each = [played.secrets(), *(PlayedParty.of(defence, public, examples, rng).secrets() for _ in range(rows - 1))]
    return played, {name: torch.stack([secrets[name] for secrets in each]) for name in each[0]}


@contextmanager
def replace_secrets(memory: Memory, secrets: Tensors) -> Iterator[None]:
    """Keep other values in memory inside the block, by path, and put the old ones back after."""
    before = {path: (place, name, place[name]) for path, place, name in _places(memory) if path in secrets}
    try:
        for path, (place, name, _) in before.items():
            place[name] = secrets[path]
        yield
    finally:
        for place, name, value in before.values():
            place[name] = value


def _places(memory: Memory, prefix: str = "") -> Iterator[tuple[str, Memory, str]]:
    """Find every floating tensor: its path, the dictionary that holds it, and its name there."""
    for name, value in memory.items():
        if isinstance(value, dict):
            yield from _places(value, f"{prefix}{name}/")
        elif isinstance(value, Tensor) and value.is_floating_point():
            yield f"{prefix}{name}", memory, name
