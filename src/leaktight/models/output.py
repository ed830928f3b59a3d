"""Outputs: which part of what a module returns is the class scores."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from torch import Tensor, nn

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


def describe_output(outputs: object, likely: str = "") -> str:
    """Say what a module returns, and how one part of it is chosen.

    Args:
        outputs: what it returns.
        likely: the part that may be the class scores; empty to name the first.

    Example:
        >>> describe_output({"aux": 1, "logits": 2}, "logits")
        'a dict with `aux`, `logits`; choose one by `output = "logits"` (`--output logits`).'
    """
    kind, parts = type(outputs).__name__, list(_parts(outputs))
    if not parts:
        return f"{kind}; return the class scores alone."
    shown, chosen = ", ".join(f"`{part}`" for part in parts[:5]), likely or parts[0]
    return f'a {kind} with {shown}; choose one by `output = "{chosen}"` (`--output {chosen}`).'


def likely_part(outputs: object, count: int, classes: int) -> str:
    """Return the part of what a module returns that may be the class scores: a row for each example.

    It is the one with as many columns as there are classes, else the first with columns at all; empty if none has any.

    Example:
        >>> import torch
        >>> likely_part((torch.zeros(3, 8), torch.zeros(3, 2), "more"), count=3, classes=2)
        '1'
    """
    rows = {name: part for name, part in _parts(outputs).items() if isinstance(part, Tensor) and part.dim() == 2}
    widths = {name: part.shape[1] for name, part in rows.items() if len(part) == count}
    return next((name for name, width in widths.items() if width == classes), next(iter(widths), ""))


def _parts(outputs: object) -> dict[str, object]:
    """Return the parts of what a module returns, by the names that choose them."""
    if isinstance(outputs, Mapping):
        return {str(name): part for name, part in outputs.items()}
    if isinstance(outputs, Sequence) and not isinstance(outputs, str):
        return {str(place): part for place, part in enumerate(outputs)}
    return {}
