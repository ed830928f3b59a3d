"""DP-SGD: clip each example's gradient, add noise, and count what it costs."""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from leaktight.core.defence import Defence, Gradient, Strength
from leaktight.core.errors import InvalidValue, Refusal
from leaktight.core.local import Local
from leaktight.core.message import Kind, Message, Tensors
from leaktight.defences import accountant
from leaktight.defences.finite import finite, finite_tensors


def example_norms(tensors: Tensors) -> Tensor:
    """Return the Euclidean norm of each example's gradient over all tensors.

    Example:
        >>> example_norms({"weight": torch.tensor([[3.0], [1e30]]), "bias": torch.tensor([4.0, 0.0])})
        tensor([5.0000e+00, 1.0000e+30])
    """
    peak, unit = _scaled(tensors)
    return peak * unit


def clipped(tensors: Tensors, clip: float) -> dict[str, Tensor]:
    """Return each example's gradient at norm `clip` if it was longer, and untouched if it was not.

    Example:
        >>> clipped({"weight": torch.tensor([[3.0, 4.0], [0.3, 0.4]])}, 1.0)["weight"]
        tensor([[0.6000, 0.8000],
                [0.3000, 0.4000]])
    """
    peak, unit = _scaled(tensors)
    long = peak * unit > clip
    return {name: torch.where(_over(long, t), t / _over(peak, t) * _over(clip / unit, t), t) for name, t in tensors.items()}


def _scaled(tensors: Tensors) -> tuple[Tensor, Tensor]:
    """Return each example's largest magnitude and its norm in units of that, so that no square overflows."""
    flat = [tensor.reshape(len(tensor), -1) for tensor in tensors.values()]
    peak = torch.cat([row.abs().amax(1, keepdim=True) for row in flat if row.numel()], 1).amax(1)
    peak = torch.where(peak > 0, peak, 1)
    wide = torch.promote_types(peak.dtype, torch.float32)
    norms = torch.stack([torch.linalg.vector_norm(row / peak[:, None], dim=1, dtype=wide) for row in flat], 1)
    return peak.to(wide), torch.linalg.vector_norm(norms, dim=1)


def _over(row: Tensor, tensor: Tensor) -> Tensor:
    """Return one number per example, shaped and typed to meet that example's entries."""
    return row.view(-1, *(1,) * (tensor.dim() - 1)).to(row.dtype if row.dtype is torch.bool else tensor.dtype)


class DPSGD(Defence):
    r"""Bound what any one example can change, and drown it in noise: differential privacy with a number to it.

    Without it the mean gradient of a batch goes out, or local steps follow it. With it each local step uses

    .. math:: \tilde g = \frac{1}{B} \Bigl( \sum_{i=1}^{B} g_i \min\bigl(1, \tfrac{C}{\lVert g_i \rVert}\bigr) + \sigma C z \Bigr), \qquad z \sim N(0, I),

    where \(g_i\) is the gradient of example \(i\) over all parameters together. The party notes `dp_sgd.epsilon` (cumulative over all
    its steps and rounds, add-or-remove-one-example), `dp_sgd.delta` and `dp_sgd.clipped`, the share of gradients that
    were clipped.

    Args:
        clip: \(C\), the norm that no example's gradient exceeds, in (0, inf); less is stronger on the message, epsilon stays.
        multiplier: \(\sigma\), noise over clip, in [0, 10000]; more is stronger. At 0 the gradients are still clipped, and
            epsilon is infinite: there is no value that means off.
        delta: the probability with which the guarantee may fail, in (0, 1); keep it well below one over the party's examples.

    Example:
        >>> local = Local("client-0", seed=0)
        >>> local.now.examples = 100
        >>> defence = DPSGD(clip=1.0, multiplier=1.0)
        >>> each = Gradient({"weight": torch.ones(10, 4)}, per_example=True)
        >>> sent = defence.on_gradient(each, local)
        >>> sent.per_example, sent.tensors["weight"].shape
        (False, torch.Size([4]))
        >>> message = defence.on_message(Message(Kind.GRADIENT, "client-0", "server", 0, sent.tensors), local)
        >>> round(local.notes["dp_sgd.epsilon"], 2), local.notes["dp_sgd.clipped"]
        (2.13, 1.0)

    Differs from the paper: epsilon comes from Opacus' Rényi accountant, not from the moments accountant. It assumes Poisson
    sampling with rate batch size / examples, while batches are pieces of a shuffled data set; this is common practice,
    and the number is an estimate, not a proof. Noise is drawn in floating point from a seeded generator: the guarantee
    supposes a secret seed. How many examples there are is not protected.

    References:
        Abadi et al., "Deep Learning with Differential Privacy", 2016, algorithm 1; Mironov, Talwar and Zhang, "Rényi
        Differential Privacy of the Sampled Gaussian Mechanism", 2019, section 3.3; Balle et al., "Hypothesis Testing
        Interpretations and Rényi Differential Privacy", 2020, theorem 21.
    """

    kind: Literal["dp_sgd"] = "dp_sgd"
    strength: ClassVar[Strength] = Strength("multiplier", "up", None)
    clip: float = Field(default=1.0, gt=0)
    multiplier: float = Field(default=1.0, ge=0, le=10_000)
    delta: float = Field(default=1e-5, gt=0, lt=1)

    @property
    def per_example(self) -> bool:
        """Clipping needs each example's own gradient."""
        return True

    @property
    def promise(self) -> Literal["dp"] | None:
        """Differential privacy, unless there is no noise."""
        return "dp" if self.multiplier else None

    def on_gradient(self, gradient: Gradient, local: Local) -> Gradient:
        """Clip, sum, add noise, divide by the batch size; remember the cost."""
        if not gradient.per_example:
            raise Refusal(
                f"{self.kind} must clip each example's own gradient. Got an average instead; put it before any defence that averages."
            )
        finite_tensors(gradient.tensors, f"The gradient of {local.party} in round {local.round} under {self.kind}")
        size = len(next(iter(gradient.tensors.values())))
        self._count(gradient.tensors, size, local)
        noise = self.clip * self.multiplier
        mean = {
            name: (tensor.sum(0) + noise * local.draws.private_normals(tensor.shape[1:], tensor.dtype).to(tensor.device)) / size
            for name, tensor in clipped(gradient.tensors, self.clip).items()
        }
        return Gradient(mean, per_example=False)

    def on_message(self, message: Message, local: Local) -> Message:
        """Let a message out if every step behind it was made private, and note what has been spent."""
        if message.kind not in (Kind.GRADIENT, Kind.UPDATE):
            raise Refusal(f"{self.kind} protects gradients and updates. Got a message of kind {message.kind} instead.")
        memory = local.memory
        private, taken = memory.get("unsent", 0), int(message.facts.get("local_steps", 1))
        if private < taken:
            raise InvalidValue(
                f"The {message.kind} of {message.sender} in round {message.round} must come from steps that went through {self.kind}. "
                f"Got {private} such steps of {taken} instead; call `on_gradient` in every local step."
            )
        memory["unsent"] = 0
        local.notes["dp_sgd.epsilon"] = accountant.epsilon(memory["spent"].tolist(), self.delta)
        local.notes["dp_sgd.delta"] = self.delta
        local.notes["dp_sgd.clipped"] = memory["clipped"] / memory["seen"]
        return finite(message, self.kind)

    def _count(self, tensors: Tensors, size: int, local: Local) -> None:
        """Add one step to what the party has spent: plain numbers, so that an engine can keep them."""
        if not 0 < size <= local.examples:
            raise InvalidValue(
                f"The batch of {local.party} must be part of the examples that it owns, for {self.kind} to know its sample rate. "
                f"Got {size} of {local.examples} instead."
            )
        memory = local.memory
        cost = torch.tensor(accountant.step_cost(size / local.examples, self.multiplier), dtype=torch.float64)
        memory["spent"] = memory["spent"] + cost if "spent" in memory else cost
        memory["seen"] = memory.get("seen", 0) + size
        memory["clipped"] = memory.get("clipped", 0) + int((example_norms(tensors) > self.clip).sum())
        memory["unsent"] = memory.get("unsent", 0) + 1
