"""Messages: the only thing that crosses the trust boundary."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from enum import StrEnum

from torch import Tensor

Tensors = Mapping[str, Tensor]


class Kind(StrEnum):
    """What a message carries."""

    PARAMETERS = "parameters"
    GRADIENT = "gradient"
    UPDATE = "update"
    ACTIVATION = "activation"
    CUT_GRADIENT = "cut_gradient"
    REVEAL = "reveal"


@dataclasses.dataclass(frozen=True)
class Message:
    """Named tensors from one party to another.

    Args:
        kind: what the tensors are. A `gradient` is the mean over the batch; an `update` is new parameters minus old
            ones.
        sender: who sent it.
        receiver: whom it is for.
        round: the communication round, from 0.
        tensors: the content, by wire name.
        facts: public numbers that go along: `examples`, and for an update `batch_size`, `local_steps`, `learning_rate`.
    """

    kind: Kind
    sender: str
    receiver: str
    round: int
    tensors: Tensors
    facts: Mapping[str, float] = dataclasses.field(default_factory=dict)

    @property
    def key(self) -> tuple[str, int]:
        """Which message of a run this is: its sender and round."""
        return self.sender, self.round

    def map(self, change: Callable[[Tensor], Tensor]) -> Message:
        """Return the same message with every tensor changed."""
        return dataclasses.replace(self, tensors={name: change(tensor) for name, tensor in self.tensors.items()})


def layer_of(name: str) -> str:
    """Return the layer that a tensor belongs to: its name without the last part.

    Example:
        >>> layer_of("body.0.weight")
        'body.0'
    """
    return name.rpartition(".")[0]
