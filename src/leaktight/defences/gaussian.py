"""Gaussian noise on everything that goes out."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field
from torch import Tensor

from leaktight.channels.noise import AddNoise
from leaktight.core.defence import Strength
from leaktight.core.draws import Draws
from leaktight.defences.noise import AdditiveNoise


class GaussianNoise(AdditiveNoise):
    r"""Add Gaussian noise to a message, for whoever wants the simplest defence to compare with.

    Without it a message \(g\) goes out as it is; with it

    .. math:: \tilde g = g + \sigma z, \qquad z \sim N(0, I).

    This is not differential privacy: without `clip` nothing bounds the message that the noise is added to, and with it
    no epsilon is accounted for. For that, take `dp_sgd` or `local_dp`.

    Where messages really leave, the noise comes from a secret key (docs/secrets.md).

    Args:
        std: \(\sigma\), the noise's standard deviation in the message's own unit, or in that of `clip`, in [0, inf); 0
            is off, more is stronger.
        each: `message` adds noise once to what goes out, `step` to the gradient of every local step.
        clip: \(C\), the norm that a message is shortened to first if it is longer. The noise is then \(\sigma C z\), in
            proportion to the largest message, whatever the unit of the messages is. None leaves their length as it is.
            `local_dp` does the same, and accounts for an epsilon.

    Example:
        >>> import torch
        >>> from leaktight.core.local import Local
        >>> from leaktight.core.message import Kind, Message
        >>> message = Message(Kind.GRADIENT, "client-0", "server", 0, {"weight": torch.zeros(1000)})
        >>> sent = GaussianNoise(std=0.5).on_message(message, Local("client-0", seed=0))
        >>> round(sent.tensors["weight"].std().item(), 1)
        0.5
        >>> GaussianNoise(std=0.1, clip=2.0).noise_norm(entries=100)
        2.0

    Differs from the paper: none known. The polarization paper lists it as "DP" with \(\sigma\) from 0.0001 to 0.5 on
    the batch gradient of every step, clipping switched off; under that name it would claim more than it gives.

    References:
        Fan et al., "Rethinking Privacy Preserving Deep Learning: How to Evaluate and Thwart Privacy Attacks", 2020,
        section 4.1.
    """

    kind: Literal["gaussian_noise"] = "gaussian_noise"
    title: ClassVar[str] = "Gaussian noise"
    strength: ClassVar[Strength] = Strength("std", "up", 0.0)
    std: float = Field(default=0.01, ge=0)

    @property
    def off(self) -> bool:
        """Whether the deviation is 0."""
        return self.std == 0

    @property
    def deviation(self) -> float:
        """The deviation in the message's unit."""
        return self.std * self.unit

    @property
    def law(self) -> AddNoise:
        """A Gaussian law."""
        return AddNoise(std=self.deviation)

    def noisy(self, tensor: Tensor, draws: Draws) -> Tensor:
        """Return a tensor plus Gaussian noise."""
        return tensor + self.deviation * draws.normal_like(tensor)
