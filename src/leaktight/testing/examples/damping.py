"""Damping: send less of everything, and some noise."""

from __future__ import annotations

import dataclasses
from typing import ClassVar, Literal

from pydantic import Field

from leaktight.channels import AddNoise
from leaktight.core.channel import Belief, Channel, Stage
from leaktight.core.defence import Defence, Strength
from leaktight.core.local import Local
from leaktight.core.message import Message
from leaktight.core.task import Task
from leaktight.defences.finite import finite


class Damping(Defence):
    """Multiply every entry by a public factor and add Gaussian noise, for whoever wants to see how to write a defence.

    What crosses the boundary: the message times `factor`, plus noise.

        g' = factor * g + N(0, std^2)

    Args:
        factor: above 0. It hides nothing: whoever knows it divides by it.
        std: the standard deviation of the noise, at least 0. Larger is stronger; at 0 and factor 1 it is off.

    Differs from the paper: there is none.
    """

    kind: Literal["example_damping"] = "example_damping"
    strength: ClassVar[Strength | None] = Strength(field="std", stronger="up", off=0.0)
    factor: float = Field(1.0, gt=0)
    std: float = Field(0.01, ge=0)

    @property
    def promise(self) -> Literal["noise"] | None:
        """Noise that is new in every message, unless there is none."""
        return "noise" if self.std else None

    def channel(self, task: Task) -> Channel:
        """State both steps, so that every attack that searches knows them."""
        return Channel(message=(Multiply(self.factor), AddNoise(std=self.std)))

    def on_message(self, message: Message, local: Local) -> Message:
        """Damp the message and add noise from the party's own stream."""
        finite(message, self.kind)
        if self.std == 0 and self.factor == 1:
            return message
        return message.map(lambda tensor: self.factor * tensor + self.std * local.draws.normal_like(tensor))


@dataclasses.dataclass(frozen=True)
class Multiply(Stage):
    """Everything times a public number: the means, and the noise that earlier stages added."""

    factor: float

    def push(self, belief: Belief) -> Belief:
        """Multiply means and noise alike."""
        means = {name: self.factor * mean for name, mean in belief.means.items()}
        return dataclasses.replace(belief, means=means).map_noise(lambda noise: noise.scale(self.factor))
