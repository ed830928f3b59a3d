"""Obstacles: everything about a module that keeps it from being audited, all at once, each with its fix."""

from __future__ import annotations

import copy

from torch import nn
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.dropout import _DropoutNd
from torch.nn.parameter import is_lazy

from leaktight.core.errors import InvalidValue
from leaktight.models.behaviour import behaviour_faults, mode_faults, quote
from leaktight.models.trial import Failure, attempt


def obstacles(module: object, shape: tuple[int, ...], classes: int, head: str = "") -> list[str]:
    """Return every obstacle to auditing a module, each a sentence and its fix; an empty list means there is none.

    Layers are looked at first. Then a copy runs on random examples, also differentiated twice under `vmap` as attacks do it:
    what fails there is an obstacle, and what works (an activation in place, a weight shared by two layers) is none. Layers
    in training mode are reported once, and the trial goes on in evaluation mode, so that they do not hide what else is wrong.

    Args:
        module: what is to be audited; it is not changed.
        shape: the shape of one example.
        classes: how many outputs there must be.
        head: the name of the last linear layer; empty to find it.

    Example:
        >>> obstacles(nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.Linear(32, 10)), (1, 8, 8), 10)
        []
        >>> for obstacle in obstacles(nn.Sequential(nn.Dropout(), nn.Linear(64, 10), nn.Softmax(1)), (64,), 10):
        ...     print(obstacle)
        Dropout `0` in training mode makes an example's gradient random. Call `.eval()` on it, or set its p to 0.
        The linear layer `1` is not the last step. Return its output as it is: the loss applies softmax itself.
    """
    if not isinstance(module, nn.Module):
        return [f"It must be a torch.nn.Module. Got {type(module).__name__} instead; return the module itself."]
    modes, lazy = _modes(module), _lazy_layers(module)
    if lazy:
        return [*modes, f"Lazy layer {quote(lazy)} has no weights yet. Run the module once before you return it."]
    found = list(modes)
    if not any(parameter.requires_grad for parameter in module.parameters()):
        found.append("No parameter can be learned. Set `requires_grad` on those that are trained.")
    try:
        copied = attempt(lambda: copy.deepcopy(module))
    except Failure as failure:
        return [*found, f"It cannot be copied: {failure}. Hold tensors as parameters or buffers, and nothing open or locked."]
    if modes:
        copied.eval()
    else:
        found += mode_faults(copied, shape)
    return found + behaviour_faults(copied, shape, classes, head)


def require_none(what: str, module: object, shape: tuple[int, ...], classes: int, head: str = "") -> nn.Module:
    """Return the module, or raise one `InvalidValue` that lists every obstacle."""
    found = obstacles(module, shape, classes, head)
    if found or not isinstance(module, nn.Module):
        raise InvalidValue("\n- ".join([f"{what} cannot be audited as it is:", *found]))
    return module


def _modes(module: nn.Module) -> list[str]:
    """Name the layers whose mode mixes examples or adds chance."""
    norms = {name: layer for name, layer in module.named_modules() if isinstance(layer, _NormBase) and _mixes(layer)}
    fixable = [name for name, layer in norms.items() if layer.track_running_stats]
    hopeless = [name for name in norms if name not in fixable]
    drops = [name for name, layer in module.named_modules() if isinstance(layer, _DropoutNd) and layer.training and layer.p > 0]
    found = []
    if fixable:
        found.append(
            f"Batch norm {quote(fixable)} in training mode mixes the examples of a batch. "
            'Set `batch_norm = "eval"`, call `.eval()` on it, or use group norm.'
        )
    if hopeless:
        found.append(f"Batch norm {quote(hopeless)} without running statistics mixes the examples of a batch. Use group norm.")
    if drops:
        found.append(
            f"Dropout {quote(drops)} in training mode makes an example's gradient random. Call `.eval()` on it, or set its p to 0."
        )
    return found


def _mixes(layer: _NormBase) -> bool:
    if isinstance(layer, nn.InstanceNorm1d | nn.InstanceNorm2d | nn.InstanceNorm3d):
        return layer.training and layer.track_running_stats
    return layer.training or layer.running_mean is None


def _lazy_layers(module: nn.Module) -> list[str]:
    tensors = [*module.named_parameters(), *module.named_buffers()]
    return list(dict.fromkeys(name.rpartition(".")[0] for name, tensor in tensors if is_lazy(tensor)))
