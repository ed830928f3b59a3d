"""Terms of an objective: what an attacker minimises beside what the messages and the prior say."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable, Mapping
from typing import ClassVar

from torch import Tensor

from leaktight.core.channel import Belief
from leaktight.core.message import Tensors
from leaktight.core.value import Registered

Match = Callable[[Belief, Tensors, Mapping[str, Tensor]], Tensor]
"""From what is known of a candidate's message, the observed one, and each tensor's rounding, to one number."""


@dataclasses.dataclass(frozen=True)
class Evidence:
    """One message about the examples, for a term that looks at more than the examples themselves.

    Args:
        parameters: what the sender was sent, by wire name.
        sent: what it sent and is matched, by wire name.
        buffers: what it sent along that is no parameter, such as the running statistics of batch norm.
    """

    parameters: Tensors
    sent: Tensors
    buffers: Tensors


@dataclasses.dataclass(frozen=True)
class Candidate:
    """What one row stands for.

    Args:
        inputs: the examples, (examples, *shape) in natural units.
        targets: their label probabilities, (examples, classes).
        secrets: what the sender keeps to itself, by name.
        evidence: each message about them.
    """

    inputs: Tensor
    targets: Tensor
    secrets: Tensors
    evidence: tuple[Evidence, ...] = ()


class Term(Registered):
    """One more number that an attacker adds to its objective. Plugins can bring one.

    It must be fit for `torch.func` and for tracing: no `.item()`, no branch on the value of a tensor.
    """

    family: ClassVar[str] = "term"

    @abc.abstractmethod
    def __call__(self, candidate: Candidate) -> Tensor:
        """Return the term of one candidate."""


class GroupTerm(Term):
    """A term that sees all candidates of a victim at once."""

    def __call__(self, candidate: Candidate) -> Tensor:
        """Say nothing about a candidate by itself."""
        return candidate.inputs.new_zeros(())

    @abc.abstractmethod
    def compare(self, inputs: Tensor, owners: Tensor) -> Tensor:
        """Return one number for each candidate.

        Args:
            inputs: the examples of all candidates, (rows, examples, *shape).
            owners: whose each is, (rows,).
        """
