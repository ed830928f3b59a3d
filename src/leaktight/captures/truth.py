"""The truth behind captures: the private batches, which their owner may add so that an audit is graded."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from leaktight.captures.capture import pack_tensors, read_tensors
from leaktight.captures.manifest import LARGEST_GUESS
from leaktight.core.errors import InvalidValue
from leaktight.core.private import write_private
from leaktight.core.task import Batch

INPUTS, LABELS = "inputs", "labels"
_FORM = "`SENDER/ROUND/inputs` and `SENDER/ROUND/labels` for each message, or `inputs` and `labels` for a single one"


def write_truth(path: Path, batches: Mapping[str, Batch]) -> None:
    """Write private batches for their owner alone.

    Args:
        path: the file, safetensors.
        batches: for each message, by `SENDER/ROUND`, the examples of all its local steps in order; pixels in [0, 1].
    """
    tensors: dict[str, Tensor] = {}
    for key, batch in batches.items():
        tensors |= {f"{key}/{INPUTS}": batch.inputs, f"{key}/{LABELS}": batch.labels}
    write_private(path, pack_tensors(tensors))


def truth_files(path: Path) -> list[Path]:
    """Return the file with private batches, or those in a folder, where several owners may have put one each.

    Raises:
        InvalidValue: it is a folder without such a file.
    """
    if not path.is_dir():
        return [path]
    files = sorted(path.glob("*.safetensors"))
    if not files:
        raise InvalidValue(f"The folder `{path}` holds no private batches (`*.safetensors`). Name the one that does.")
    return files


def read_truth(path: Path, keys: list[str]) -> dict[str, Batch]:
    """Read the private batches behind captures, by `SENDER/ROUND`; messages without one are left out.

    Args:
        path: the file that the owner wrote: safetensors with `SENDER/ROUND/inputs` and `SENDER/ROUND/labels`. Or a
            folder with such files.
        keys: the messages that were captured.

    Raises:
        InvalidValue: the file cannot be read, has another form, or knows none of the messages.
    """
    tensors = {name: tensor for file in truth_files(path) for name, tensor in read_tensors(file).items()}
    if tensors.keys() == {INPUTS, LABELS} and len(keys) == 1:
        tensors = {f"{keys[0]}/{name}": tensor for name, tensor in tensors.items()}
    odd = [name for name in tensors if name.rpartition("/")[2] not in (INPUTS, LABELS) or "/" not in name]
    batches = {
        key: _batch(path, key, tensors[f"{key}/{INPUTS}"], tensors[f"{key}/{LABELS}"])
        for key in keys
        if {f"{key}/{INPUTS}", f"{key}/{LABELS}"} <= tensors.keys()
    }
    if odd or not batches:
        got = f"Got `{odd[0]}`" if odd else "None of its names is that of a captured message"
        raise InvalidValue(f"The truth `{path.name}` must hold {_FORM}. {got}; the first message here is `{keys[0]}`.")
    return batches


def _batch(path: Path, key: str, inputs: Tensor, labels: Tensor) -> Batch:
    whole = (
        labels.dim() == 1
        and not labels.is_floating_point()
        and not labels.is_complex()
        and labels.dtype is not torch.bool
    )
    if not whole or inputs.dim() < 2 or len(inputs) != len(labels) or not len(labels) or inputs.numel() > LARGEST_GUESS:
        raise InvalidValue(
            f"The truth `{path.name}` must hold for `{key}` as many inputs as integer labels, at least one. "
            f"Got shapes {tuple(inputs.shape)} and {tuple(labels.shape)} instead."
        )
    pixels = (
        inputs
        if inputs.is_floating_point()
        else inputs.float() / 255
        if inputs.dtype is torch.uint8
        else inputs.float()
    )
    if not torch.isfinite(pixels).all():
        raise InvalidValue(f"The inputs of `{key}` in the truth `{path.name}` must be finite numbers.")
    return Batch(pixels.float(), labels.long())
