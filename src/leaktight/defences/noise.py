"""Noise: what all additive noise on messages has in common."""

from __future__ import annotations

import abc
from typing import Literal

from torch import Tensor

from leaktight.channels.noise import AddNoise
from leaktight.core.channel import Channel
from leaktight.core.defence import Defence, Gradient
from leaktight.core.draws import Draws
from leaktight.core.local import Local
from leaktight.core.message import Message
from leaktight.core.task import Task
from leaktight.defences.finite import finite, finite_tensors


class AdditiveNoise(Defence):
    """Adds independent noise to every entry, of each message or of the gradient of each local step.

    Where a message is the gradient of one step the two differ in nothing but the stream. Where it is the update of many
    steps, noise on the steps is what the polarization paper calls "DP": the optimiser sees it and the update carries
    its sum.

    Args:
        each: `message` adds noise once to what goes out, `step` to the mean gradient of every local step. A step's
            gradient holds the private parameters too, such as a private head that another defence keeps at home: with
            `step` they learn from noisy gradients, with `message` from clean ones.
    """

    each: Literal["message", "step"] = "message"

    @property
    @abc.abstractmethod
    def off(self) -> bool:
        """Whether there is no noise at all."""

    @property
    def covers_buffers(self) -> bool:
        """Whether noise is on messages: steps alone have no running statistics."""
        return self.each == "message" or self.off

    @property
    def memoryless(self) -> bool:
        """Each draw is new."""
        return True

    @property
    def promise(self) -> Literal["noise"] | None:
        """Noise, unless it is off."""
        return None if self.off else "noise"

    @abc.abstractmethod
    def noisy(self, tensor: Tensor, draws: Draws) -> Tensor:
        """Return a tensor plus noise."""

    @property
    @abc.abstractmethod
    def law(self) -> AddNoise:
        """What anybody can say of the noise."""

    def channel(self, task: Task) -> Channel:
        """State the law of the noise on each message, or on each step."""
        if self.off:
            return Channel()
        return Channel(message=(self.law,)) if self.each == "message" else Channel(step=(self.law,))

    def on_gradient(self, gradient: Gradient, local: Local) -> Gradient:
        """Add noise to the mean gradient, if every step is to have its own."""
        if self.each == "message" or self.off:
            return gradient
        mean = finite_tensors(
            gradient.mean().tensors, f"The gradient of {local.party} in round {local.round} under {self.kind}"
        )
        return Gradient({name: self.noisy(tensor, local.draws) for name, tensor in mean.items()}, per_example=False)

    def on_message(self, message: Message, local: Local) -> Message:
        """Add noise to every tensor, if its steps had none."""
        finite(message, self.kind)
        if self.each == "step" or self.off:
            return message
        return finite(message.map(lambda tensor: self.noisy(tensor, local.draws)), self.kind)
