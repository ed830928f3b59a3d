"""A network in the memory of a program: what `leaktight.audit_model` was given."""

from __future__ import annotations

from typing import Literal

from torch import nn

from leaktight.core.in_memory import find
from leaktight.data.columns import Columns
from leaktight.models.factory import wrap
from leaktight.models.mode import BatchNormMode
from leaktight.models.network import Network


class InMemory(Network):
    """A module that a program has as an object and gave to `leaktight.audit_model`; a plan file cannot name it.

    It starts with the weights that it has, whatever the seed, and is itself never changed.

    Args:
        name: what it is called there.
        head: the name of the last linear layer; empty to find it.
        batch_norm: the mode of batch norm, as in `factory`.
        output: which part of what it returns is the class scores, as in `factory`.

    Example:
        >>> print(InMemory(name="Net"))
        in_memory(name='Net')
    """

    kind: Literal["in_memory"] = "in_memory"
    name: str
    head: str = ""
    batch_norm: BatchNormMode = "train"
    output: str = ""

    def parts(self, shape: tuple[int, ...], classes: int) -> tuple[nn.Module, nn.Module]:
        """Take a copy of the module apart."""
        return wrap(self._module(), shape, classes, self.head, self.batch_norm, self.output)

    def size(self, inputs: Columns | tuple[int, ...], classes: int) -> int | None:
        """Count the parameters that it has."""
        return sum(parameter.numel() for parameter in self._module().parameters())

    def _module(self) -> nn.Module:
        module: nn.Module = find(self.family, self.name, nn.Module).content
        return module
