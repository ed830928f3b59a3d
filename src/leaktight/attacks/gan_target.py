"""GAN targets: what the shared model has to take a fake for, and estimates of the keys that it hides."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from leaktight.core.message import Kind, Message, Tensors
from leaktight.core.task import Task


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
    r"""A class whose score the shared model gives to anyone: the loss of a fake is \(-\log p_v(x)\).

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


KEPT = 0.98
"""How much of an estimate is left after each turn: keys stay, but early turns say little about them."""


def estimate_key(task: Task, before: Tensors, after: Tensors, inputs: Tensor, earlier: Tensor | None) -> Tensor:
    r"""Estimate the keys that others train for, not normalised, by how their updates move embeddings of some images.

    With \(\theta_t\) what an attacker left on its last turn, \(\theta_t'\) what it is handed now, and its own fakes x,

    .. math:: e_t = 0.98 \, e_{t-1} + \frac{m_t}{\lVert m_t \rVert}, \qquad
        m_t = \sum_x \phi_{\theta_t'}(x) - \phi_{\theta_t}(x) .

    A victim's step on an example of class c moves the embedding of every image towards \(\psi_c\), and those most that
    its model takes for similar. So fakes that begin to look like a class are moved towards its key, and a generator
    that follows the estimate is drawn there.

    Args:
        task: the agreed one, whose outputs are embeddings.
        before: the parameters that the attacker left behind, by the model's own names.
        after: those that it is handed on its next turn.
        inputs: the images.
        earlier: the estimate of its last turn; None on the first.

    Differs from the paper: There attackers try random keys only.

    Example:
        >>> from leaktight.defences import ClassKeys
        >>> from leaktight.testing.toys import toy_task
        >>> task = ClassKeys(dimensions=16).on_agree(toy_task())
        >>> before = task.model_parameters(task.public_parameters())
        >>> after = {name: tensor + 0.1 for name, tensor in before.items()}
        >>> estimate_key(task, before, after, torch.zeros(3, *task.shape), None).norm().round()
        tensor(1.)
    """
    with torch.no_grad():
        embeddings = [task.forward(parameters, inputs).sum(0) for parameters in (before, after)]
    moved = F.normalize(embeddings[1] - embeddings[0], dim=0)
    return moved if earlier is None else KEPT * earlier + moved


def parameters_left(asked: Message, sent: Message) -> dict[str, Tensor] | None:
    r"""Return the parameters that a server would have if only one participant had answered; others add to them.

    Of n participants who are asked at once the mean counts, so that an update m of one comes to \(m / n\), and a
    gradient to \(-\eta m / n\). None where a participant cannot tell what its answer comes to: the server weighs
    answers, hides them in a sum, or has momentum.

    Example:
        >>> asked = Message(Kind.PARAMETERS, "server", "client-1", 0, {"weight": torch.ones(1)}, {"participants": 2.0})
        >>> parameters_left(asked, Message(Kind.UPDATE, "client-1", "server", 0, {"weight": torch.ones(1)}))
        {'weight': tensor([1.5000])}
    """
    facts, gradient = asked.facts, sent.kind is Kind.GRADIENT
    known = not gradient or ("learning_rate" in facts and not (facts.get("momentum") or facts.get("adaptive")))
    if "participants" not in facts or not known:
        return None
    share = (-facts["learning_rate"] if gradient else 1.0) / facts["participants"]
    own = sent.tensors
    return {
        name: tensor + share * own[name] if name in own else tensor.clone() for name, tensor in asked.tensors.items()
    }
