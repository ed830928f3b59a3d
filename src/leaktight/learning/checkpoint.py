"""Checkpoints: a party's parameters and its optimiser's moments as plain named tensors, out and in again; and the step between two."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from leaktight.core.errors import InvalidValue
from leaktight.core.local import Local, Memory
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
    model, moments = state.get("model", {}), state.get("optimiser", {})
    if not isinstance(model, dict) or not isinstance(moments, dict):
        raise InvalidValue("The checkpoint must hold the parameters of this model and its optimiser's moments. It does not.")
    wrong = sorted(name for name in own.keys() | model.keys() if name not in own or not _fits(own[name], model.get(name)))
    wrong += sorted(name for name in own if not isinstance(moments.get(name, {}), dict))
    if wrong:
        raise InvalidValue(f"The checkpoint must hold the parameters of this model. It differs in `{wrong[0]}`.")
    with torch.no_grad():
        for name, parameter in own.items():
            parameter.copy_(model[name])
    optimiser.state.clear()
    for name, parameter in own.items():
        kept = _copied(moments.get(name, {}))
        if kept:
            optimiser.state[parameter] = {key: _beside(parameter, value) for key, value in kept.items()}


def progress(state: Memory) -> tuple[int, Memory, Tensor | None]:
    """Return a checkpoint's step, memory and last message, as copies.

    Raises:
        InvalidValue: one of them makes no sense.

    Example:
        >>> progress({"step": 3.0})
        (3, {}, None)
    """
    step, memory, sent = state.get("step"), state.get("memory", {}), state.get("sent")
    if not isinstance(step, int | float) or not (step >= 0 and float(step).is_integer()):
        raise InvalidValue(f"The `step` of a checkpoint must be a whole number of at least 0. Got {step!r} instead.")
    if not isinstance(memory, dict):
        raise InvalidValue(f"The `memory` of a checkpoint must be named values. Got {type(memory).__name__} instead.")
    if sent is not None and not (isinstance(sent, Tensor) and sent.is_floating_point() and sent.dim()):
        raise InvalidValue("What a checkpoint holds as `sent` must be a tensor of one row per example. It is not.")
    return int(step), copy.deepcopy(memory), None if sent is None else sent.detach().clone()


@contextmanager
def unchanged_by_errors(local: Local) -> Iterator[None]:
    """Bring a party's memory and notes back to what they were if the block raises.

    Example:
        >>> local = Local("label-party", seed=0)
        >>> try:
        ...     with unchanged_by_errors(local):
        ...         local.scope("defence").memory["count"] = 1
        ...         raise InvalidValue("No.")
        ... except InvalidValue:
        ...     print(local.memory)
        {}
    """
    memory, notes = copy.deepcopy(local.memory), dict(local.notes)
    try:
        yield
    except BaseException:
        for live, kept in ((local.memory, memory), (local.notes, notes)):
            live.clear()
            live.update(kept)
        raise


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
