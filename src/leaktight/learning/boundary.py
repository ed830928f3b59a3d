"""The boundary of split learning: what a party accepts from the other one, and which defences have a place there."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from leaktight.core.defence import Defence, Gradient
from leaktight.core.errors import InvalidValue, LeaktightError, Refusal
from leaktight.core.local import Local
from leaktight.core.message import Kind, Message
from leaktight.core.random import global_seed
from leaktight.core.task import Model
from leaktight.learning.task import classification

FEATURE_PARTY = "feature-party"
LABEL_PARTY = "label-party"
ACTIVATIONS = "activations"
GRADIENT = "gradient"


def require_message(message: object, sender: str) -> None:
    """Raise if what the other party answered is no message at all."""
    if not isinstance(message, Message):
        raise InvalidValue(f"{sender} must answer with a message. Got {type(message).__name__} instead.")


class InvalidMessage(InvalidValue):
    """What the other party sent is not what it must be; nothing of it was applied."""


def accept(
    message: Message, kind: Kind, name: str, shape: tuple[int, ...], dtype: torch.dtype = torch.float32
) -> Tensor:
    """Return the tensor in a message of the other party: the one place where a tensor that arrives is checked.

    Args:
        message: what came in.
        kind: the kind it must have.
        name: the tensor's name.
        shape: its shape: one row for each example of the batch.
        dtype: the type that it is returned in, and has to be finite in.

    Raises:
        InvalidMessage: it is not that; one sentence says why.

    Example:
        >>> message = Message(Kind.ACTIVATION, "feature-party", "label-party", 3, {"activations": torch.zeros(5, 2)})
        >>> accept(message, Kind.ACTIVATION, "activations", (4, 2))
        Traceback (most recent call last):
        leaktight.learning.boundary.InvalidMessage: The activations of step 3 from feature-party must have 4 rows, \
one for each example of the batch. Got 5 instead.
    """
    try:
        return only_tensor(message, kind, name, shape, dtype)
    except InvalidValue as error:
        raise InvalidMessage(str(error)) from None


def only_tensor(message: Message, kind: Kind, name: str, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """Return the one tensor that a message must carry, after checking everything about it; see `accept`.

    Raises:
        InvalidValue: it is not that.
    """
    what = f"The {name} of step {message.round} from {message.sender}"
    if message.kind is not kind:
        raise InvalidValue(f"{what} must come in a message of kind `{kind}`. Got `{message.kind}` instead.")
    strange = sorted(message.tensors.keys() - {name})
    if strange:
        raise InvalidValue(f"{what} must come alone. Got `{strange[0]}` beside them.")
    tensor: object = message.tensors.get(name)
    if tensor is None or (isinstance(tensor, Tensor) and not tensor.numel()):
        raise InvalidValue(f"{what} must have {shape[0]} rows of shape {shape[1:]}. Got nothing instead.")
    if not isinstance(tensor, Tensor) or tensor.layout is not torch.strided:
        got = tensor.layout if isinstance(tensor, Tensor) else type(tensor).__name__
        raise InvalidValue(f"{what} must come in a dense tensor. Got {got} instead.")
    if not tensor.is_floating_point():
        raise InvalidValue(f"{what} must be floating point numbers. Got {tensor.dtype} instead.")
    if not tensor.dim():
        raise InvalidValue(f"{what} must have {shape[0]} rows of shape {shape[1:]}. Got a single number instead.")
    if len(tensor) != shape[0]:
        raise InvalidValue(
            f"{what} must have {shape[0]} rows, one for each example of the batch. Got {len(tensor)} instead."
        )
    if tuple(tensor.shape) != shape:
        raise InvalidValue(f"{what} must have rows of shape {shape[1:]}. Got {tuple(tensor.shape[1:])} instead.")
    # What is finite in double precision need not be so in the party's own.
    cast = tensor.to(dtype)
    require_finite(cast, what)
    return cast


def require_finite(tensor: Tensor, what: str) -> None:
    """Raise if a tensor has NaN or infinite values, and say in how many rows."""
    # A sum is one quick pass; where it is finite, every entry is.
    if math.isfinite(tensor.sum().item()):
        return
    rows = tensor if tensor.dim() else tensor[None]
    bad = int((~torch.isfinite(rows.reshape(len(rows), -1))).any(1).sum())
    if bad:
        raise InvalidValue(f"{what} must be finite numbers. Got NaN or infinite values in {bad} of {len(rows)} rows.")


def require_placeable(defence: Defence) -> None:
    """Refuse a defence that does what split learning has no place for: left out in silence, it would protect nothing.

    Each such hook is tried on a small task; one that leaves what it is given as it is does nothing.

    Raises:
        Refusal: with the reason.
    """
    with global_seed(0):
        task = classification(Model(nn.Identity(), nn.Linear(2, 2)), (2,), 2)
    local = Local("trial", seed=0)
    gradient = Gradient(
        {name: torch.zeros_like(tensor) for name, tensor in task.model.tensors().items()}, per_example=False
    )
    does = ""
    try:
        if defence.on_agree(task) is not task:
            does = "changes the public task"
        elif defence.on_task(task, local.scope("defence")) is not task:
            does = "changes a party's own task"
        elif defence.per_example or defence.on_gradient(gradient, local.scope("defence")) is not gradient:
            does = "changes gradients of parameters, which no party sends"
    except LeaktightError as error:
        does = f"does not apply ({error})"
    if does:
        raise Refusal(f"{defence.kind} {does}; split learning has no place for that. Use a defence of messages.")
