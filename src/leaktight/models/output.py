"""Outputs: which part of what a module returns is the class scores."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from torch import nn

from leaktight.core.errors import InvalidValue, did_you_mean


@dataclasses.dataclass(frozen=True)
class PickOutput:
    """A forward hook that hands on one part of what a module returns. Names of layers stay as they are.

    Args:
        part: a key of a dictionary, or a place in a tuple, from 0.

    Example:
        >>> import torch
        >>> class Two(nn.Linear):
        ...     def forward(self, inputs):
        ...         return {"logits": super().forward(inputs), "aux": inputs}
        >>> pick_output(Two(3, 2), "logits")(torch.zeros(1, 3)).shape
        torch.Size([1, 2])
    """

    part: str

    def __call__(self, module: nn.Module, inputs: object, outputs: object) -> object:
        """Return the part."""
        if isinstance(outputs, Mapping):
            if self.part in outputs:
                return outputs[self.part]
            raise InvalidValue(f"There is no output `{self.part}`. {did_you_mean(self.part, list(map(str, outputs)))}")
        if isinstance(outputs, Sequence) and self.part.isdecimal() and int(self.part) < len(outputs):
            return outputs[int(self.part)]
        raise InvalidValue(f"There is no output `{self.part}`. It returns {describe_output(outputs)}")


def pick_output(module: nn.Module, part: str) -> nn.Module:
    """Let a module return one part of what it returns; it is changed."""
    module.register_forward_hook(PickOutput(part))
    return module


def describe_output(outputs: object) -> str:
    """Say what a module returns, and how one part of it is chosen.

    Example:
        >>> describe_output({"logits": 1, "aux": 2})
        'a dict with `logits`, `aux`; choose one by `output = "logits"` (`--output logits`).'
    """
    kind = type(outputs).__name__
    if isinstance(outputs, Mapping) and outputs:
        parts = list(map(str, outputs))
    elif isinstance(outputs, Sequence) and len(outputs) and not isinstance(outputs, str):
        parts = list(map(str, range(len(outputs))))
    else:
        return f"{kind}; return the class scores alone."
    shown = ", ".join(f"`{part}`" for part in parts[:5])
    return f'a {kind} with {shown}; choose one by `output = "{parts[0]}"` (`--output {parts[0]}`).'
