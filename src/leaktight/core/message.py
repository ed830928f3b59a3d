"""Messages: the only thing that crosses the trust boundary."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from enum import StrEnum

from torch import Tensor

from leaktight.core.errors import Refusal

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
        sealed: more of the content, which goes from one trusted enclave to another: it is aggregated like the rest, and
            nobody in any seat sees it.
    """

    kind: Kind
    sender: str
    receiver: str
    round: int
    tensors: Tensors
    facts: Mapping[str, float] = dataclasses.field(default_factory=dict)
    sealed: Tensors = dataclasses.field(default_factory=dict, repr=False)

    @property
    def key(self) -> tuple[str, int]:
        """Which message of a run this is: its sender and round."""
        return self.sender, self.round

    def map(self, change: Callable[[Tensor], Tensor]) -> Message:
        """Return the same message with every tensor changed."""
        return dataclasses.replace(self, tensors={name: change(tensor) for name, tensor in self.tensors.items()})

    def whole(self) -> Tensors:
        """Return the content with what is sealed, for whoever aggregates inside an enclave."""
        return {**self.tensors, **self.sealed} if self.sealed else self.tensors

    def outgoing(self) -> Tensors:
        """Return the content, for a transport that has no enclave.

        Raises:
            Refusal: some of it is sealed, and would have to go out in the open or be lost.
        """
        if self.sealed:
            raise Refusal(
                f"The layer `{layer_of(next(iter(self.sealed)))}` is sealed: it may travel only between trusted "
                "enclaves. There is none here; measure `sealed` in an audit, or `withhold` the layer."
            )
        return self.tensors


def layer_of(name: str) -> str:
    """Return the layer that a tensor belongs to: its name without the last part.

    Example:
        >>> layer_of("body.0.weight")
        'body.0'
    """
    return name.rpartition(".")[0]
