"""Checkpoints: a party's parameters and its optimiser's moments as plain named tensors, out and in again; and the step between two."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from leaktight.core.errors import InvalidValue
from leaktight.core.local import Memory
from leaktight.learning.optimiser import Optimiser


def saved(module: nn.Module, optimiser: torch.optim.Optimizer) -> Memory:
    """Return copies of a module's parameters and of what its optimiser keeps for each: tensors and numbers by name, no pickle.

    Example:
        >>> layer = nn.Linear(2, 1)
        >>> list(saved(layer, torch.optim.SGD(layer.parameters(), lr=0.1))["model"])
        ['weight', 'bias']
    """
    return {
        "model": {name: parameter.detach().clone() for name, parameter in module.named_parameters()},
        "optimiser": {name: _copied(optimiser.state.get(parameter, {})) for name, parameter in module.named_parameters()},
    }


def restored(module: nn.Module, optimiser: torch.optim.Optimizer, state: Memory) -> None:
    """Bring a module and its optimiser back to what `saved` returned.

    Raises:
        InvalidValue: the checkpoint is of another model; nothing is changed then.
    """
    own = dict(module.named_parameters())
    model = state.get("model", {})
    wrong = sorted(name for name in own.keys() | model.keys() if name not in own or not _fits(own[name], model.get(name)))
    if wrong:
        raise InvalidValue(f"The checkpoint must hold the parameters of this model. It differs in `{wrong[0]}`.")
    with torch.no_grad():
        for name, parameter in own.items():
            parameter.copy_(model[name])
    moments = state.get("optimiser", {})
    optimiser.state.clear()
    for name, parameter in own.items():
        kept = _copied(moments.get(name, {}))
        if kept:
            optimiser.state[parameter] = {key: _beside(parameter, value) for key, value in kept.items()}


def follow(steps: torch.optim.Optimizer, optimiser: Optimiser, step: int) -> None:
    """Take one step of a torch optimiser, of the size that its settings give for this step."""
    rate = optimiser.at(step).learning_rate
    for group in steps.param_groups:
        group["lr"] = rate
    steps.step()


def forget(parameters: Iterable[Tensor]) -> None:
    """Drop the gradients of the last step; an optimiser's `zero_grad` does the same and takes much longer to start."""
    for parameter in parameters:
        parameter.grad = None


def _fits(parameter: Tensor, found: object) -> bool:
    return isinstance(found, Tensor) and found.shape == parameter.shape


def _copied(values: Any) -> dict[str, Any]:
    present = {key: value for key, value in values.items() if value is not None}
    return {key: value.detach().clone() if isinstance(value, Tensor) else value for key, value in present.items()}


def _beside(parameter: Tensor, value: Any) -> Any:
    # A step count stays on the CPU, where torch's optimisers keep it.
    return value.to(parameter.device) if isinstance(value, Tensor) and value.shape == parameter.shape else value
