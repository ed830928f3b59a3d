"""Secret polarization network: a private head whose loss hides what the shared gradient tells."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from leaktight.channels.layers import OnLayers
from leaktight.channels.noise import AddNoise
from leaktight.core.channel import Channel
from leaktight.core.defence import Defence, Gradient, Strength
from leaktight.core.draws import Draws
from leaktight.core.errors import Refusal
from leaktight.core.local import Local, Memory
from leaktight.core.message import layer_of
from leaktight.core.task import Model, Task
from leaktight.defences.finite import finite_tensors

_PUBLIC = "head.public."
"""How the public head's parameters begin beside a private one."""


def polarization_loss(outputs: Tensor, codes: Tensor, margin: float) -> Tensor:
    r"""Return the polarization loss of each example, \(\sum_k \max(m - v_k t_k, 0)\).

    For any margin of at least 1 it bounds the Hamming distance between the signs of the outputs and the code from
    above.

    Args:
        outputs: \(v\), (examples, bits).
        codes: \(t\), each example's code of +1 and -1, (examples, bits).
        margin: \(m\), at least 1.

    Example:
        >>> polarization_loss(torch.tensor([[2.0, -0.5]]), torch.tensor([[1.0, 1.0]]), margin=1.0)
        tensor([1.5000])

    References: Fan et al. 2020, Definition 2 (Eq. 18) and Lemma 5.5.
    """
    return (margin - outputs * codes).clamp_min(0).sum(-1)


class TwinHead(nn.Module):
    """The public head and a private one, side by side on the same features."""

    def __init__(self, public: nn.Module, private: nn.Module) -> None:
        super().__init__()
        self.public, self.private = public, private

    def forward(self, features: Tensor) -> tuple[Any, Tensor]:
        """Return the public outputs, and the private ones."""
        return self.public(features), self.private(features.flatten(1))


class Polarization(Defence):
    r"""Train a private head as well: its gradient on the shared body hides what the public loss reveals about the data.

    Without it the gradient of the cross entropy goes out. With it every participant draws for each class a random code
    \(t_c\) of K bits, puts a private linear head \(\Phi\) on the shared features, and trains

    .. math:: L = \alpha_1 L_{CE}(u, y) + \alpha_2 \sum_k \max(m - v_k t_y^k, 0), \qquad v = \Phi(\varphi(x)),

    so that what goes out of the body is \(\alpha_1 \nabla L_{CE}\) plus a perturbation that nobody else can compute.
    Head and codes never leave the participant.

    What it leaves open (`leaktight reproduce polarization-network` checks each): the gradient of the public head has no
    such term. It is \(\alpha_1\) times the plain one, and still tells the labels of a small batch and, of a single
    example, the features. And a linear first layer with bias gives a single example away exactly, under any loss, at
    any \(\alpha_2\). The hardened variant, `head_noise`, adds noise to the public head's gradient in every local step,
    against the first two; the third stays.

    Args:
        alpha2: weight of the private loss, in [0, inf); 0 is off, more is stronger.
        alpha1: weight of the public loss, above 0.
        bits: K, the length of a code, at least 1.
        margin: \(m\), at least 1, for the loss to bound the Hamming distance.
        bound: private weights and biases start uniform in (-bound, bound); None for \(1 / \sqrt{features}\).
        head_noise: standard deviation of Gaussian noise on the public head's gradient of each local step, in [0, inf);
            0 is none.

    Example:
        >>> from leaktight.learning import classification
        >>> from leaktight.models import MLP
        >>> task = classification(MLP().build((4,), classes=3, seed=0), (4,), 3)
        >>> local = Local("client-0", seed=0)
        >>> own = Polarization(bits=8).on_task(task, local)
        >>> list(own.public_parameters()) == list(task.public_parameters()), local.memory["codes"].shape
        (True, torch.Size([3, 8]))

    Differs from the paper: `head_noise` is ours. Eq. 5 sums over the codes of all classes; here, as in Definition 2 and
    Algorithm 1, only the true class's code counts. The text asks for \(\alpha_1 + \alpha_2 = 1\), its experiments and
    this default keep \(\alpha_1 = 1\). How the private head starts is not said.

    References:
        Fan et al., "Rethinking Privacy Preserving Deep Learning: How to Evaluate and Thwart Privacy Attacks", 2020,
        section 3.1 (Eq. 4 to 6), appendix B, Algorithm 1.
    """

    kind: Literal["polarization"] = "polarization"
    title: ClassVar[str] = "polarization network"
    strength: ClassVar[Strength] = Strength("alpha2", "up", 0.0)
    leaves_open: ClassVar[tuple[str, ...]] = (
        "The labels of a small batch stay readable off the public head's gradient, unless `head_noise` hides them.",
        "The features of a single example stay readable off it too, and images can be searched that have them.",
        "A linear first layer with bias gives a single example away exactly, whatever the private loss.",
    )
    alpha2: float = Field(0.1, ge=0)
    alpha1: float = Field(1.0, gt=0)
    bits: int = Field(64, ge=1)
    margin: float = Field(1.0, ge=1)
    bound: Annotated[float, Field(gt=0)] | None = None
    # Left out where there is none, so that settings of before it was there keep their keys.
    head_noise: float = Field(0.0, ge=0, exclude_if=lambda std: std == 0)

    @property
    def redraws(self) -> bool:
        """Whether the public head gets noise, which is new in each message."""
        return self.head_noise > 0

    def channel(self, task: Task) -> Channel:
        """State that the task is the sender's own, unless the private loss has no weight and the public one its own.

        Noise on the public head is stated too, by the names that it has beside a private one and alone.
        """
        heads = [layer_of(name) for name in task.model.tensors() if name.startswith("head.") or name == "head"]
        layers = tuple(dict.fromkeys([*heads, *(head.replace("head", "head.public", 1) for head in heads)]))
        noise = (OnLayers(layers, (AddNoise(std=self.head_noise),)),) if self.head_noise else ()
        return Channel(private_task=self.alpha2 != 0 or self.alpha1 != 1, step=noise)

    def on_gradient(self, gradient: Gradient, local: Local) -> Gradient:
        """Add noise to the gradient of the public head, if it is to be guarded."""
        if not self.head_noise:
            return gradient
        mean = finite_tensors(
            gradient.mean().tensors, f"The gradient of {local.party} in round {local.round} under {self.kind}"
        )
        noisy = {
            name: tensor + self.head_noise * local.draws.normal_like(tensor) if name.startswith(_PUBLIC) else tensor
            for name, tensor in mean.items()
        }
        return Gradient(noisy, per_example=False)

    def on_task(self, task: Task, local: Local) -> Task:
        """Put the private head beside the public one and add its loss."""
        if type(task.model) is not Model:
            raise Refusal(
                "polarization must see a body with one head. Another defence returns more than that head's outputs; "
                "leave one of them out."
            )
        # Drawn once and kept in memory: where every message has a new key, they could not be drawn again.
        codes = 2.0 * local.fixed_draws(self.kind, "codes").integers(2, (task.classes, self.bits)) - 1.0
        local.memory.setdefault("codes", codes.to(task.device))
        private = self._head(_width(task), local.fixed_draws(self.kind, "head")).to(task.device)
        model = Model(task.model.body, TwinHead(task.model.head, private), task.model.normalise)
        return dataclasses.replace(
            task,
            model=model,
            loss=self._loss(task.loss, local.memory),
            predict=lambda outputs: task.predict(outputs[0]),
            wire=lambda name: _wire(name, task.wire),
        )

    def _head(self, features: int, draws: Draws) -> nn.Linear:
        bound = 1 / math.sqrt(features) if self.bound is None else self.bound
        with draws.initialise():
            head = nn.Linear(features, self.bits)
            for parameter in head.parameters():
                nn.init.uniform_(parameter, -bound, bound)
        return head

    def _loss(self, public: Callable[[Any, Tensor], Tensor], memory: Memory) -> Callable[[Any, Tensor], Tensor]:
        def loss(outputs: tuple[Any, Tensor], labels: Tensor) -> Tensor:
            codes: Tensor = memory["codes"]
            own = labels.to(codes.dtype) @ codes if labels.dim() == 2 else codes[labels]
            return self.alpha1 * public(outputs[0], labels) + self.alpha2 * polarization_loss(
                outputs[1], own, self.margin
            )

        return loss


def _wire(name: str, public: Callable[[str], str | None]) -> str | None:
    """Send the public head under the name that it had before."""
    if name.startswith("head.private."):
        return None
    return public(name.replace(_PUBLIC, "head.", 1) if name.startswith(_PUBLIC) else name)


def _width(task: Task) -> int:
    """Return how many features one example has."""
    if isinstance(task.model.head, nn.Linear):
        return task.model.head.in_features
    with torch.no_grad():
        return task.model.features(torch.zeros(1, *task.shape, device=task.device)).flatten(1).shape[1]
