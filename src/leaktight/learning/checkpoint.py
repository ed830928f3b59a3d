"""Checkpoints: a party's parameters and its optimiser's moments as named tensors, out and in again, and on disk."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from leaktight.core.archive import pack, read_archive
from leaktight.core.errors import InvalidValue, LeaktightError
from leaktight.core.local import Local, Memory
from leaktight.core.private import reason, write_private
from leaktight.core.scenario import flatten, unflatten
from leaktight.learning.optimiser import Optimiser

FORMAT = 1


def training_state(module: nn.Module, optimiser: torch.optim.Optimizer) -> Memory:
    """Return copies of a module's parameters and of its optimiser's moments: tensors and numbers by name, no pickle.

    Example:
        >>> layer = nn.Linear(2, 1)
        >>> list(training_state(layer, torch.optim.SGD(layer.parameters(), lr=0.1))["model"])
        ['weight', 'bias']
    """
    return {
        "model": {name: parameter.detach().clone() for name, parameter in module.named_parameters()},
        "optimiser": {name: _copy(optimiser.state.get(parameter, {})) for name, parameter in module.named_parameters()},
    }


def restore_training(module: nn.Module, optimiser: torch.optim.Optimizer, state: Memory) -> None:
    """Bring a module and its optimiser back to what `training_state` returned.

    Raises:
        InvalidValue: the checkpoint is of another model; nothing is changed then.
    """
    own = dict(module.named_parameters())
    model, moments = state.get("model", {}), state.get("optimiser", {})
    if not isinstance(model, dict) or not isinstance(moments, dict):
        raise InvalidValue(
            "The checkpoint must hold the parameters of this model and its optimiser's moments. It does not."
        )
    wrong = sorted(
        name for name in own.keys() | model.keys() if name not in own or not _fits(own[name], model.get(name))
    )
    wrong += sorted(name for name in own if not isinstance(moments.get(name, {}), dict))
    if wrong:
        raise InvalidValue(f"The checkpoint must hold the parameters of this model. It differs in `{wrong[0]}`.")
    with torch.no_grad():
        for name, parameter in own.items():
            parameter.copy_(model[name])
    optimiser.state.clear()
    for name, parameter in own.items():
        own_moments = _copy(moments.get(name, {}))
        if own_moments:
            optimiser.state[parameter] = {key: _on_device_of(parameter, value) for key, value in own_moments.items()}


def read_progress(state: Memory) -> tuple[int, Memory, Tensor | None]:
    """Return a checkpoint's step, memory and last message, as copies.

    Raises:
        InvalidValue: one of them makes no sense.

    Example:
        >>> read_progress({"step": 3.0})
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


def party_state(
    part: nn.Module, optimiser: torch.optim.Optimizer, step: int, local: Local, sent: Tensor | None
) -> Memory:
    """Return a checkpoint of everything that changes in a party of split learning: tensors and numbers, by nested name.

    Args:
        part: its part of the model.
        optimiser: what trains that.
        step: which step is next.
        local: what it remembers.
        sent: the tensor of its last message, if that may have to be sent again.
    """
    last = {} if sent is None else {"sent": sent.clone()}
    memory = copy.deepcopy(local.memory)
    return {**training_state(part, optimiser), "step": float(step), "memory": memory, **last}


def restore_party(
    part: nn.Module, optimiser: torch.optim.Optimizer, local: Local, state: Memory
) -> tuple[int, Tensor | None]:
    """Bring a party back to a checkpoint of `party_state`; return its next step, and the tensor it sent last."""
    step, memory, sent = read_progress(state)
    restore_training(part, optimiser, state)
    local.memory.clear()
    local.memory.update(memory)
    return step, sent


@contextmanager
def rollback_on_error(local: Local) -> Iterator[None]:
    """Bring a party's memory and notes back to what they were if the block raises.

    Example:
        >>> local = Local("label-party", seed=0)
        >>> try:
        ...     with rollback_on_error(local):
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
        for live, before in ((local.memory, memory), (local.notes, notes)):
            live.clear()
            live.update(before)
        raise


def take_step(steps: torch.optim.Optimizer, optimiser: Optimiser, step: int) -> None:
    """Take one step of a torch optimiser, of the size that its settings give for this step."""
    rate = optimiser.at(step).learning_rate
    for group in steps.param_groups:
        group["lr"] = rate
    steps.step()


def clear_gradients(parameters: Iterable[Tensor]) -> None:
    """Drop the gradients of the last step; an optimiser's `zero_grad` does the same and takes much longer to start."""
    for parameter in parameters:
        parameter.grad = None


def write_checkpoint(path: Path, state: Memory) -> None:
    """Write what a party's `state()` returned: either all of it is there afterwards, or the file is as it was.

    The file has mode 0600. It holds the party's own parameters and memory, so it must not be shared with the other
    party.

    Args:
        path: the file.
        state: tensors and numbers by nested name.

    Example:
        >>> import tempfile, torch
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_checkpoint(Path(folder) / "party.safetensors", {"step": 3.0, "model": {"weight": torch.ones(2)}})
        ...     read_checkpoint(Path(folder) / "party.safetensors")
        {'step': 3.0, 'model': {'weight': tensor([1., 1.])}}
    """
    write_private(path, pack(flatten(state), {"format": FORMAT}))


def read_checkpoint(path: Path) -> Memory:
    """Return a state as `restore` takes it.

    Raises:
        InvalidValue: the file cannot be read, or is not a whole checkpoint.
    """
    try:
        values, about = read_archive(path)
        if about.get("format") != FORMAT:
            raise LeaktightError(f"It has format {about.get('format')!r}.")
    except OSError as error:
        raise InvalidValue(f"The checkpoint `{path}` cannot be read: {reason(error)}. Name another one.") from error
    except InvalidValue:
        raise
    except LeaktightError as error:
        raise InvalidValue(
            f"The file `{path}` must be a whole checkpoint of this version. It is not; "
            "resume from an earlier one, or start anew."
        ) from error
    return unflatten(values)


def _fits(parameter: Tensor, value: object) -> bool:
    return isinstance(value, Tensor) and value.shape == parameter.shape


def _copy(values: Any) -> dict[str, Any]:
    present = {key: value for key, value in values.items() if value is not None}
    return {key: value.detach().clone() if isinstance(value, Tensor) else value for key, value in present.items()}


def _on_device_of(parameter: Tensor, value: Any) -> Any:
    # A step count stays on the CPU, where torch's optimisers keep it.
    return value.to(parameter.device) if isinstance(value, Tensor) and value.shape == parameter.shape else value
