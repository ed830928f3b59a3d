"""Devices: where tensors live."""

from __future__ import annotations

from typing import Literal

import torch

from leaktight.core.errors import InvalidValue

DeviceName = Literal["auto", "cpu", "cuda", "mps"]


def device_of(name: DeviceName) -> torch.device:
    """Return the device that a name means here; `auto` is the fastest one there is.

    Example:
        >>> device_of("cpu")
        device(type='cpu')
    """
    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if name == "auto":
        return torch.device(next(kind for kind, present in there.items() if present))
    if not there[name]:
        raise InvalidValue(
            f"The device `{name}` is not there: torch {torch.__version__} finds none. Use `auto` or `cpu`."
        )
    return torch.device(name)
