"""The task that a federation agrees on: classify, by cross entropy."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from leaktight.core.task import Model, Task


def classification(model: Model, shape: tuple[int, ...], classes: int, names: tuple[str, ...] = ()) -> Task:
    """Return the plain classification task for a model.

    The loss takes class indices, or a probability for each class (an attacker that does not know the labels needs
    those).
    """
    return Task(model, cross_entropy, as_scores, shape, classes, names=names)


def cross_entropy(outputs: Tensor, labels: Tensor) -> Tensor:
    """Return the cross entropy of each example; labels are indices (n) or probabilities (n, classes)."""
    return F.cross_entropy(outputs, labels, reduction="none")


def as_scores(outputs: Tensor) -> Tensor:
    """Take the outputs as class scores."""
    return outputs
