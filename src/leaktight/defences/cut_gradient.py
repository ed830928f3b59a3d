"""Cut gradients: the messages of a label party in split learning, one row of numbers per example of the batch."""

from __future__ import annotations

import abc
import dataclasses
import math

import numpy as np
import torch
from torch import Tensor

from leaktight.channels.noise import StatedNoise
from leaktight.core.channel import Channel, Noise
from leaktight.core.defence import Defence
from leaktight.core.errors import InvalidValue, Refusal
from leaktight.core.local import Local
from leaktight.core.message import Kind, Message, Tensors
from leaktight.defences.finite import finite

# Squares of entries between these neither overflow nor vanish: in single and in double precision.
SINGLE, DOUBLE = (1e-15, 1e15), (1e-150, 1e150)
_NUMPY = {torch.float32: np.float32, torch.float64: np.float64}


class CutDefence(Defence):
    """A defence of cut gradients: what it does to a row depends on the other rows of the batch, and maybe on labels."""

    @property
    def states_channel(self) -> bool:
        """No: it states what happens to cut gradients, in `cut_channel`."""
        return False

    @abc.abstractmethod
    def cut_channel(self, gradients: Tensors, labels: Tensor) -> Channel:
        """State how the rows of a batch come about.

        It is for attackers who weigh what the clean rows and labels may have been.

        Args:
            gradients: the clean rows, by name.
            labels: the label of each row, 0 or 1.
        """


@dataclasses.dataclass(frozen=True)
class Rows:
    """A cut gradient as a matrix, whatever tensors it came in.

    Args:
        matrix: one row per example, in single precision, or in double precision where squares would not fit.
        norms: the length of each row.
    """

    matrix: Tensor
    norms: Tensor

    def __len__(self) -> int:
        return len(self.matrix)

    @property
    def dimensions(self) -> int:
        """How many numbers each example has."""
        return self.matrix.shape[1]


def rows_of(message: Message, kind: str) -> Rows:
    """Return a cut gradient row by row, or raise.

    It raises `Refusal` for another kind of message, and `InvalidValue` for one without sense.

    Args:
        message: what the label party is about to send. Several tensors are taken together, example by example.
        kind: the defence's kind, for the error's sentence.

    Example:
        >>> rows = torch.tensor([[3.0, 4.0], [0.0, 2.0]])
        >>> message = Message(Kind.CUT_GRADIENT, "label-party", "feature-party", 0, {"cut": rows})
        >>> rows_of(message, "max_norm").norms
        tensor([5., 2.])
    """
    if message.kind is not Kind.CUT_GRADIENT:
        raise Refusal(
            f"{kind} protects cut gradients, which have one row per example. Got a message of kind {message.kind} "
            "instead; take it for the label party of split learning only."
        )
    tensors = message.tensors.values()
    owner = f"The {message.kind} of {message.sender} in round {message.round} under {kind}"
    if len({tensor.shape[:1] for tensor in tensors}) != 1 or any(tensor.dim() == 0 for tensor in tensors):
        shapes = ", ".join(f"`{name}` of shape {tuple(tensor.shape)}" for name, tensor in message.tensors.items())
        raise InvalidValue(
            f"{owner} must have one row per example in every tensor. Got {shapes or 'no tensor'} instead."
        )
    if not all(tensor.is_floating_point() and tensor.numel() for tensor in tensors):
        finite(message, kind)
    matrix = _matrix([tensor.flatten(1) if tensor.dim() > 1 else tensor[:, None] for tensor in tensors])
    norms = torch.linalg.vector_norm(matrix, dim=1)
    # One pass finds most messages sound: NaN, infinity and overflow all end up in the largest norm.
    if matrix.numel() and SINGLE[0] < norms.max().item() < SINGLE[1]:
        return Rows(matrix, norms)
    finite(message, kind)
    matrix = matrix.double()
    largest = matrix.abs().max().item() if matrix.numel() else 0.0
    if largest and not DOUBLE[0] < largest < DOUBLE[1]:
        raise InvalidValue(
            f"{owner} must be of a size between {DOUBLE[0]:g} and {DOUBLE[1]:g}. Got {largest:g} instead."
        )
    return Rows(matrix, torch.linalg.vector_norm(matrix, dim=1))


def with_rows(message: Message, matrix: Tensor, kind: str) -> Message:
    """Return the message with a matrix's rows in its tensors' own shapes and types.

    Raise if they are not finite there.
    """
    widths = [math.prod(tensor.shape[1:]) for tensor in message.tensors.values()]
    parts = zip(message.tensors.items(), torch.split(matrix, widths, dim=1), strict=True)
    sent = {name: part.to(tensor.dtype).reshape(tensor.shape) for (name, tensor), part in parts}
    changed = dataclasses.replace(message, tensors=sent)
    total = sum(tensor.sum().item() for tensor in sent.values())
    return changed if math.isfinite(total) else finite(changed, kind)


def scratch(shape: tuple[int, ...], like: Tensor) -> Tensor:
    """Return memory for a result of the type and device of another tensor; its contents are undefined.

    On Linux numpy asks for large pages where torch does not, and to touch fresh small pages takes longer than to fill
    them.

    Example:
        >>> scratch((2, 3), torch.zeros(1, dtype=torch.float64)).dtype
        torch.float64
    """
    if like.device.type != "cpu" or like.dtype not in _NUMPY:
        return like.new_empty(shape)
    return torch.from_numpy(np.empty(shape, _NUMPY[like.dtype]))


def gaussian_channel(
    gradients: Tensors, variance: Tensor, along: Tensor | None = None, *, complete: bool = True
) -> Channel:
    """Return the channel of Gaussian noise on rows, in every direction and along one.

    Noise along a direction is stated of cut gradients of a single tensor; of several, whose rows share one draw, it is
    not.

    Args:
        gradients: the clean rows, by name.
        variance: in every direction, for each row.
        along: the direction for each row, times the standard deviation along it; None for none.
        complete: whether that is all.

    Example:
        >>> stage = gaussian_channel({"cut": torch.zeros(2, 3)}, torch.tensor([1.0, 4.0])).message[0]
        >>> stage.noise["cut"].variance.flatten()
        tensor([1., 4.])
    """
    if along is not None and len(gradients) > 1:
        return Channel(complete=False)
    noise = {
        name: Noise(
            variance.to(tensor).view(-1, *(1,) * (tensor.dim() - 1)),
            along=None if along is None else along.to(tensor).view(tensor.shape),
        )
        for name, tensor in gradients.items()
    }
    return Channel(message=(StatedNoise(noise),), complete=complete)


def as_message(gradients: Tensors) -> Message:
    """Return clean rows as a message that nobody sends."""
    return Message(Kind.CUT_GRADIENT, "label-party", "feature-party", 0, gradients)


def positives(local: Local, examples: int, kind: str) -> Tensor:
    """Return which examples of the current batch are positive, or raise unless there is a label 0 or 1 for each row.

    Example:
        >>> from leaktight.core.task import Batch
        >>> local = Local("label-party", seed=0)
        >>> local.now.batch = Batch(torch.zeros(3, 1), torch.tensor([0, 1, 0]))
        >>> positives(local, 3, "sumkl")
        tensor([False,  True, False])
    """
    if local.batch is None or len(local.batch) != examples:
        got = "no batch" if local.batch is None else f"{len(local.batch)} labels for {examples} rows"
        raise InvalidValue(f"{kind} must know the label of each row of a cut gradient. Got {got} instead.")
    labels = local.batch.labels
    positive = labels == 1
    if labels.dim() != 1 or not bool((positive | (labels == 0)).all()):
        raise Refusal(f"{kind} hides which of two classes an example has. Got labels other than 0 and 1 instead.")
    return positive


def _matrix(parts: list[Tensor]) -> Tensor:
    joined = parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)
    return joined.detach() if joined.dtype is torch.float64 else joined.detach().float()
