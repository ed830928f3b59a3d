"""The Gaussian mechanism: what defences share that clip, add Gaussian noise and account for the epsilon."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from leaktight.core.defence import Defence, Strength
from leaktight.core.errors import Refusal
from leaktight.core.message import Kind, Message


class GaussianMechanism(Defence):
    """A defence of gradients and updates that promises differential privacy.

    Args:
        clip: the largest norm, above 0.
        multiplier: noise over clip, in [0, 10000]; more is stronger.
        delta: with which probability the promise may fail, in (0, 1).
    """

    strength: ClassVar[Strength] = Strength("multiplier", "up", None)
    clip: float = Field(default=1.0, gt=0)
    multiplier: float = Field(default=1.0, ge=0, le=10_000)
    delta: float = Field(default=1e-5, gt=0, lt=1)

    @property
    def memoryless(self) -> bool:
        """It remembers what was spent, and no message depends on that."""
        return True

    @property
    def promise(self) -> Literal["dp"] | None:
        """Differential privacy, unless there is no noise."""
        return "dp" if self.multiplier else None

    def require_gradients(self, message: Message) -> None:
        """Raise a `Refusal` for a message of another kind than gradients and updates."""
        if message.kind not in (Kind.GRADIENT, Kind.UPDATE):
            raise Refusal(f"{self.kind} protects gradients and updates. Got a message of kind {message.kind} instead.")
