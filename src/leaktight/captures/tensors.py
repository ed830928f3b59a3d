"""Tensor files of captures: what was sent, and what its sender had been sent, as others wrote it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import safetensors.torch
from torch import Tensor

from leaktight.core.document import parse_json
from leaktight.core.errors import InvalidValue
from leaktight.core.input_file import GIBIBYTE, open_input
from leaktight.core.private import reason
from leaktight.core.tensor_file import DamagedTensors, load_tensors

LARGEST_FILE = 4 * GIBIBYTE
"""How many bytes the tensors of one message may have."""
_ORDER = "order"


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Read a tensor file, in the order in which it was written if it says so.

    Raises:
        InvalidValue: it cannot be read, is cut, too large, or its header does not fit its content.
    """
    try:
        with open_input(path, LARGEST_FILE) as file:
            tensors, words = load_tensors(file, os.fstat(file.fileno()).st_size)
        names = parse_json(words.get(_ORDER, "[]").encode())
    except OSError as error:
        raise InvalidValue(f"The tensor file `{path}` cannot be read: {reason(error)}.") from error
    except DamagedTensors as error:
        raise InvalidValue(f"The tensor file `{path.name}` {error}. Record the messages again.") from error
    except ValueError as error:
        raise InvalidValue(f"The order in the tensor file `{path.name}` cannot be read. Record the messages again.") from error
    known = isinstance(names, list) and all(isinstance(name, str) for name in names) and sorted(names) == sorted(tensors)
    return {name: tensors[name] for name in (names if known else tensors)}


def pack_tensors(tensors: dict[str, Tensor]) -> bytes:
    """Return tensors as safetensors that remember their order."""
    plain = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    return safetensors.torch.save(plain, metadata={_ORDER: json.dumps(list(plain))})
