"""Laplace noise on everything that goes out."""

from __future__ import annotations

import math
from typing import ClassVar, Literal

from pydantic import Field
from torch import Tensor

from leaktight.channels.noise import AddNoise
from leaktight.core.defence import Strength
from leaktight.core.draws import Draws
from leaktight.defences.noise import AdditiveNoise


class LaplaceNoise(AdditiveNoise):
    r"""Add Laplace noise to a message: heavier tails than Gaussian noise of the same variance.

    Without it a message \(g\) goes out as it is; with it, entry by entry,

    .. math:: \tilde g = g + z, \qquad p(z) = \frac{1}{2b} e^{-|z| / b}, \qquad \mathrm{Var}(z) = 2 b^2.

    This is not differential privacy: without `clip` nothing bounds the message that the noise is added to, and with it
    no epsilon is accounted for. For that, take `dp_sgd` or `local_dp`.

    Where messages really leave, the noise comes from a secret key (docs/secrets.md).

    Args:
        scale: \(b\), in the message's own unit, or in that of `clip`, in [0, inf); 0 is off, more is stronger.
        each: `message` adds noise once to what goes out, `step` to the gradient of every local step.
        clip: the norm that a message is shortened to first if it is longer; the scale is then in units of it. None
            leaves the length as it is.

    Example:
        >>> import torch
        >>> from leaktight.core.local import Local
        >>> from leaktight.core.message import Kind, Message
        >>> message = Message(Kind.GRADIENT, "client-0", "server", 0, {"weight": torch.zeros(10000)})
        >>> sent = LaplaceNoise(scale=0.5).on_message(message, Local("client-0", seed=0))
        >>> round(sent.tensors["weight"].abs().mean().item(), 1)
        0.5

    Differs from the paper: none known; the papers do not say whether their scale is \(b\) or the standard deviation.
    Here it is \(b\).

    References:
        Gao et al., "Privacy-preserving Collaborative Learning with Automatic Transformation Search", 2021, section 5.1
        (scales 0.001 and 0.01); Fan et al., "Rethinking Privacy Preserving Deep Learning", 2020, appendix E, 5.6
        (scales 0.0001 to 0.5).
    """

    kind: Literal["laplace_noise"] = "laplace_noise"
    title: ClassVar[str] = "Laplace noise"
    strength: ClassVar[Strength] = Strength("scale", "up", 0.0)
    scale: float = Field(default=0.01, ge=0)

    @property
    def off(self) -> bool:
        """Whether the scale is 0."""
        return self.scale == 0

    @property
    def deviation(self) -> float:
        """The root of the variance, in the message's unit."""
        return math.sqrt(2) * self.scale * self.unit

    @property
    def law(self) -> AddNoise:
        """A Laplace law."""
        return AddNoise(laplace=self.scale * self.unit)

    def noisy(self, tensor: Tensor, draws: Draws) -> Tensor:
        """Return a tensor plus Laplace noise."""
        return tensor + self.scale * self.unit * draws.laplace_like(tensor)
