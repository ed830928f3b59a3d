"""Modes: a module's layers in training mode become layers that a participant's own stream and `torch.func` can run."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Literal

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm, _NormBase
from torch.nn.modules.dropout import _DropoutNd
from torch.nn.modules.instancenorm import _InstanceNorm

from leaktight.core.training_mode import BatchNorm, Dropout

BatchNormMode = Literal["train", "eval"]

_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)
_DROPS = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d)


def set_modes(module: nn.Module, batch_norm: BatchNormMode) -> nn.Module:
    """Return a copy whose batch norm and dropout in training mode are `core.training_mode`'s.

    Names of parameters and buffers stay. A layer that is in evaluation mode already stays as it is: it is frozen.

    Args:
        module: any module; it is not changed.
        batch_norm: `train` leaves batch norm in the mode that it is in, `eval` puts all of it into evaluation mode.

    Example:
        >>> set_modes(nn.Sequential(nn.BatchNorm2d(3), nn.Dropout(0.1)), "train")
        Sequential(
          (0): BatchNorm(eps=1e-05, momentum=0.1)
          (1): Dropout(rate=0.1)
        )
    """
    copied = copy.deepcopy(module)
    if batch_norm == "eval":
        for layer in copied.modules():
            if isinstance(layer, _NormBase):
                layer.eval()
    replaced: dict[int, nn.Module] = {}
    for name, layer in list(copied.named_modules(remove_duplicate=False)):
        twin = replaced.get(id(layer)) or _twin(layer)
        if twin is None:
            continue
        replaced[id(layer)] = twin
        if not name:
            return twin
        copied.set_submodule(name, twin)
    return copied


def mode_obstacles(module: nn.Module, batch_norm: BatchNormMode) -> list[str]:
    """Return what in a module is in training mode and has no replacement, each with its fix.

    Args:
        module: any module; it is not changed.
        batch_norm: as for `set_modes`.

    Example:
        >>> mode_obstacles(nn.Sequential(nn.AlphaDropout(), nn.AlphaDropout()), "train")
        ['Dropout `0`, `1` of class AlphaDropout is in training mode. Use `nn.Dropout`, or call `.eval()` on it.']
    """
    names: dict[str, list[str]] = {}
    for name, layer in module.named_modules():
        obstacle = _obstacle(layer, batch_norm)
        if obstacle:
            names.setdefault(obstacle, []).append(name or "module")
    return [obstacle.format(quote(found)) for obstacle, found in names.items()]


def quote(names: Iterable[str]) -> str:
    """Return names in a list for people, at most five of them."""
    shown = [f"`{name}`" for name in names]
    return ", ".join(shown[:5]) + (f" and {len(shown) - 5} more" if len(shown) > 5 else "")


def _obstacle(layer: nn.Module, batch_norm: BatchNormMode) -> str:
    """Return the sentence about a layer that cannot be taken over, with a place for its name; empty if it can be."""
    kind = type(layer).__name__
    if isinstance(layer, _BatchNorm) and _in_training(layer, batch_norm):
        if type(layer) not in _NORMS:
            return (
                f"Batch norm {{}} of class {kind} is in training mode. Use torch's own class, set "
                '`batch_norm = "eval"` (`--batch-norm eval`), or use group norm.'
            )
        if layer.running_mean is None and batch_norm == "eval":
            return (
                "Batch norm {} has no running statistics to normalise by in evaluation mode. Set "
                '`batch_norm = "train"` (`--batch-norm train`), or use group norm.'
            )
        if layer.running_mean is not None and layer.momentum is None:
            return "Batch norm {} averages over all batches that it ever saw. Give it a momentum, such as 0.1."
    elif isinstance(layer, _InstanceNorm) and layer.training and layer.track_running_stats and batch_norm == "train":
        return "Instance norm {} tracks running statistics. Set its `track_running_stats` to False, or call `.eval()`."
    elif isinstance(layer, _DropoutNd) and layer.training and layer.p > 0:
        if type(layer) not in _DROPS:
            return f"Dropout {{}} of class {kind} is in training mode. Use `nn.Dropout`, or call `.eval()` on it."
        if layer.p == 1:
            return "Dropout {} drops everything. Set its p below 1."
    return ""


def _twin(layer: nn.Module) -> nn.Module | None:
    if type(layer) in _NORMS and isinstance(layer, _BatchNorm) and _in_training(layer, "train"):
        return BatchNorm(layer)
    if type(layer) in _DROPS and isinstance(layer, _DropoutNd) and layer.training and layer.p > 0:
        return Dropout(layer)
    return None


def _in_training(layer: _BatchNorm, batch_norm: BatchNormMode) -> bool:
    """Return whether a batch norm will normalise by the batch."""
    return (layer.training and batch_norm == "train") or layer.running_mean is None
