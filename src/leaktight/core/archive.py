"""Archives: named tensors and numbers as safetensors, with a text of JSON beside them; never a pickle."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import safetensors
import safetensors.torch
from torch import Tensor

from leaktight.core.errors import LeaktightError

Values = Mapping[str, Tensor | float]


def pack(values: Values, about: Mapping[str, Any]) -> bytes:
    """Return tensors and numbers by name, in their order, and what is to be known of them.

    Args:
        values: finite or infinite numbers, and tensors, which come back on the CPU.
        about: anything that JSON can hold.

    Example:
        >>> import torch
        >>> unpack(pack({"weight": torch.ones(2), "step": 3.0}, {"format": 1}))
        ({'weight': tensor([1., 1.]), 'step': 3.0}, {'format': 1})
    """
    tensors = {name: value.detach().cpu().contiguous().clone() for name, value in values.items() if isinstance(value, Tensor)}
    # The file keeps tensors in an order of its own, and noise is drawn in the order of names. A name without a number is a tensor's.
    numbers = {name: None if isinstance(value, Tensor) else value for name, value in values.items()}
    text = json.dumps({"about": about, "values": numbers})
    return safetensors.torch.save(tensors, metadata={"leaktight": text})


def unpack(content: bytes) -> tuple[dict[str, Tensor | float], dict[str, Any]]:
    """Undo `pack`.

    Raises:
        LeaktightError: the bytes are not a whole archive.
    """
    try:
        tensors = safetensors.torch.load(content)
        length = int.from_bytes(content[:8], "little")
        found = json.loads(json.loads(content[8 : 8 + length])["__metadata__"]["leaktight"])
        values = {name: tensors[name] if value is None else value for name, value in found["values"].items()}
        return values, dict(found["about"])
    except (safetensors.SafetensorError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise LeaktightError("It is not a whole archive.") from error
