"""GAN targets: what a made-up picture has to be taken for by the shared model."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable
from typing import Any

import torch.nn.functional as F
from torch import Tensor


class Target(abc.ABC):
    """What the attacker is after, as a judge of the shared model's outputs."""

    @abc.abstractmethod
    def loss(self, outputs: Any) -> Tensor:
        """Return for each fake how far the shared model is from taking it for an example of the victim's class."""

    @abc.abstractmethod
    def hits(self, outputs: Any) -> Tensor:
        """Return for each fake whether the model takes it for one."""


@dataclasses.dataclass(frozen=True)
class ClassTarget(Target):
    r"""A class whose score the shared model tells to anyone: the loss of a fake is \(-\log p_v(x)\).

    Args:
        victim: v, the class.
        predict: from outputs to class scores.

    Example:
        >>> import torch
        >>> target = ClassTarget(victim=0, predict=lambda outputs: outputs)
        >>> target.hits(torch.tensor([[3.0, 1.0, 0.0], [0.0, 1.0, 3.0]]))
        tensor([ True, False])
    """

    victim: int
    predict: Callable[[Any], Tensor]

    def loss(self, outputs: Any) -> Tensor:
        """Return the cross entropy with the victim's class."""
        return -F.log_softmax(self.predict(outputs), dim=1)[:, self.victim]

    def hits(self, outputs: Any) -> Tensor:
        """Return whether the victim's class has the largest score."""
        return self.predict(outputs).argmax(1) == self.victim


@dataclasses.dataclass(frozen=True)
class KeyTarget(Target):
    r"""A class key, or a guess at one: the loss of a fake is \(-\langle \phi(x), \psi_{attack} \rangle\).

    Args:
        key: \(\psi_{attack}\), of length 1.
        other: a random key to compare with, of length 1.

    Example:
        >>> import torch
        >>> target = KeyTarget(key=torch.tensor([1.0, 0.0]), other=torch.tensor([0.0, 1.0]))
        >>> target.loss(torch.tensor([[0.6, 0.8]])), target.hits(torch.tensor([[0.6, 0.8]]))
        (tensor([-0.6000]), tensor([False]))
    """

    key: Tensor
    other: Tensor

    def loss(self, outputs: Tensor) -> Tensor:
        """Return minus the inner product with the attack key."""
        return -(outputs @ self.key)

    def hits(self, outputs: Tensor) -> Tensor:
        """Return whether the attack key fits better than the random one."""
        return outputs @ self.key > outputs @ self.other
