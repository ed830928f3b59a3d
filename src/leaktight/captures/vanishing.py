"""Vanishing gradients: messages so small, or so much smaller at the input than at the output, that little can be read off them."""

from __future__ import annotations

import torch
from torch import Tensor

from leaktight.core.message import Message
from leaktight.core.task import Task

FAINT = 1e-5
"""Below this share of the parameters' size an update in single precision is rounded away by a hundredth or more."""
FADED = 1e-4
"""Below this share of the strongest layer the first layer hardly counts in what is matched."""


def vanished(task: Task, asked: Message, sent: Message) -> bool:
    """Return whether the gradient behind a message has vanished: everywhere, or on its way to the first layer.

    Sizes are root mean squares over entries that are not zero, so that a message from which entries were left out does not count.

    Args:
        task: the public task, which knows the order of layers.
        asked: the parameters that the sender was sent.
        sent: what it answered.
    """
    layers = [
        _size([sent.tensors[wire] for name in names if (wire := task.wire(name)) is not None and wire in sent.tensors])
        for names in task.layers().values()
    ]
    there = [one for one in layers if one > 0]
    whole, against = _size(list(sent.tensors.values())), _size(list(asked.tensors.values()))
    return bool(there) and (whole < FAINT * against or there[0] < FADED * max(there))


def _size(tensors: list[Tensor]) -> float:
    entries = torch.cat([tensor.flatten() for tensor in tensors]).double() if tensors else torch.zeros(0)
    moved = entries[entries != 0]
    return float(moved.square().mean().sqrt()) if len(moved) else 0.0
