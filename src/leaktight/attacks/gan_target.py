"""GAN targets: what a made-up picture has to be taken for by the shared model."""

from __future__ import annotations

import abc
import dataclasses
import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from leaktight.core.random import Stream


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


def key_at(key: Tensor, distance: float, rng: Stream) -> Tensor:
    r"""Return a random key of length 1 at a given distance from another one.

    With c = 1 - \(\delta^2 / 2\) and a random direction u orthogonal to the key it is \(c \psi + \sqrt{1 - c^2} u\), which is exactly
    \(\delta\) away.

    Args:
        key: \(\psi\), of length 1.
        distance: \(\delta\), in [0, 2]; 0 is the key itself, \(\sqrt 2\) is orthogonal, 2 is its opposite.
        rng: where the direction comes from.

    Example:
        >>> found = key_at(torch.tensor([1.0, 0.0, 0.0]), 0.5, torch.Generator().manual_seed(0))
        >>> round((found - torch.tensor([1.0, 0.0, 0.0])).norm().item(), 4), round(found.norm().item(), 4)
        (0.5, 1.0)

    References:
        Sariyildiz, Cinbis and Ayday, Key Protected Classification for Collaborative Learning, 2020, section 5.3, experiment II.
    """
    along = 1 - distance**2 / 2
    away = random_key(key, rng)
    across = F.normalize(away - (away @ key) * key, dim=0)
    found: Tensor = along * key + math.sqrt(1 - along**2) * across
    return found


def random_key(like: Tensor, rng: Stream) -> Tensor:
    """Return a random key of length 1, uniform over directions, as long as another vector and on its device.

    Example:
        >>> random_key(torch.zeros(5), torch.Generator().manual_seed(0)).shape
        torch.Size([5])
    """
    return F.normalize(torch.randn(len(like), generator=rng), dim=0).to(like)
