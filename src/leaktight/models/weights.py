"""Weights: a module's parameters and buffers from a file, by the names of its state dict. Nothing is unpickled."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from leaktight.core.errors import InvalidValue, did_you_mean
from leaktight.core.input_file import LARGEST_STATE, open_input
from leaktight.core.private import reason
from leaktight.core.tensor_file import DamagedTensors, load_tensors


def read_weights(path: Path) -> dict[str, Tensor]:
    """Read a state dict from a safetensors file.

    Raises:
        InvalidValue: there is no such file, it is too large, damaged, of another format, or holds numbers that are not
            finite.
    """
    try:
        with open_input(path, LARGEST_STATE) as file:
            tensors, _ = load_tensors(file, os.fstat(file.fileno()).st_size)
    except OSError as error:
        raise InvalidValue(f"The weights `{path}` cannot be read: {reason(error)}.") from error
    except DamagedTensors as error:
        raise InvalidValue(
            f"The weights `{path.name}` {error}. They must be a state dict in a safetensors file: "
            "`safetensors.torch.save_file(model.state_dict(), path)`."
        ) from error
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not torch.isfinite(tensor).all():
            raise InvalidValue(f"The `{name}` of the weights `{path.name}` must be finite numbers. Got others.")
    return tensors


def load_state(module: nn.Module, state: Mapping[str, Tensor], what: str) -> nn.Module:
    """Put parameters and buffers into a module, by name; a name or shape that does not fit is one error.

    Args:
        module: the module as its function made it; it is changed.
        state: tensors by the names of its state dict.
        what: what to call the state in an error.
    """
    own = module.state_dict()
    missing = [name for name in own if name not in state and not name.endswith("num_batches_tracked")]
    if missing:
        raise InvalidValue(
            f"{what} must hold `{missing[0]}` like the model. {did_you_mean(missing[0], state)} "
            "Is it the model that was trained?"
        )
    for name, tensor in own.items():
        if name in state and state[name].shape != tensor.shape:
            raise InvalidValue(
                f"The `{name}` of {what[:1].lower() + what[1:]} must have the shape {tuple(tensor.shape)} like the "
                f"model's. Got {tuple(state[name].shape)} instead."
            )
    with torch.no_grad():
        for name, tensor in own.items():
            if name in state:
                tensor.copy_(state[name])
    return module
