"""Archives: named tensors and numbers as safetensors, with a text of JSON beside them; never a pickle."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import safetensors.torch
from torch import Tensor

from leaktight.core.document import parse_json
from leaktight.core.errors import LeaktightError
from leaktight.core.input_file import LARGEST_STATE, open_input
from leaktight.core.tensor_file import DamagedTensors, load_tensors

Values = Mapping[str, Tensor | float]
Unpacked = tuple[dict[str, Tensor | float], dict[str, Any]]


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
    tensors = {
        name: value.detach().cpu().contiguous().clone() for name, value in values.items() if isinstance(value, Tensor)
    }
    # The file keeps tensors in an order of its own, and noise is drawn in the order of names. A name without a number
    # is a tensor's.
    numbers = {name: None if isinstance(value, Tensor) else value for name, value in values.items()}
    text = json.dumps({"about": about, "values": numbers})
    return safetensors.torch.save(tensors, metadata={"leaktight": text})


def unpack(content: bytes) -> Unpacked:
    """Undo `pack`.

    Raises:
        LeaktightError: the bytes are not a whole archive.
    """
    return _unpack(io.BytesIO(content), len(content))


def read_archive(path: Path) -> Unpacked:
    """Undo `pack` for what was written to a file.

    Raises:
        InvalidValue: it is no regular file, or is larger than `LARGEST_STATE`.
        LeaktightError: it is not a whole archive.
        OSError: it cannot be opened or read.
    """
    with open_input(path, LARGEST_STATE) as file:
        return _unpack(file, os.fstat(file.fileno()).st_size)


def _unpack(file: BinaryIO, size: int) -> Unpacked:
    try:
        tensors, words = load_tensors(file, size)
        text = parse_json(words["leaktight"].encode())
        values = {name: tensors[name] if value is None else value for name, value in text["values"].items()}
        about = dict(text["about"])
    except (DamagedTensors, ValueError, KeyError, TypeError, AttributeError) as error:
        raise LeaktightError("It is not a whole archive.") from error
    if not all(isinstance(value, Tensor | int | float) for value in values.values()):
        raise LeaktightError("It is not a whole archive.")
    return values, about
