"""Noise: what all additive noise on messages has in common."""

from __future__ import annotations

import abc
import dataclasses
import math
from typing import Literal

from pydantic import Field
from torch import Tensor

from leaktight.channels.clip import Clip
from leaktight.channels.noise import AddNoise
from leaktight.core.channel import Channel
from leaktight.core.defence import Defence, Gradient
from leaktight.core.draws import Draws
from leaktight.core.effect import Effect
from leaktight.core.local import Local
from leaktight.core.message import Message, Tensors
from leaktight.core.task import Task
from leaktight.defences.clipping import clip_message
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
        clip: the norm that a message, or with `step` the mean gradient of a step, is shortened to if it is longer,
            before the noise, in (0, inf); the noise is then in units of it. None leaves the length as it is, and the
            noise in the message's own unit. Where noise is off, nothing is clipped.
    """

    each: Literal["message", "step"] = "message"
    # Left out where there is none, so that settings of before it was there keep their keys.
    clip: float | None = Field(None, gt=0, exclude_if=lambda clip: clip is None)

    @property
    def unit(self) -> float:
        """What the noise is measured in: the clip, or the message's own unit."""
        return 1.0 if self.clip is None else self.clip

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

    @property
    @abc.abstractmethod
    def deviation(self) -> float:
        """The standard deviation of the noise on one entry."""

    @property
    def effects(self) -> frozenset[Effect]:
        """Noise on every entry, after a bound if there is one; on steps it comes before what is done to messages."""
        if self.off or self.each == "step":
            return frozenset()
        return frozenset({"noise"}) if self.clip is None else frozenset({"noise", "bound"})

    @property
    def message_bound(self) -> float | None:
        """The clip, if it is one of messages."""
        return None if self.off or self.each == "step" else self.clip

    def noise_norm(self, entries: int) -> float:
        """Return that of independent noise on every entry of a message; noise on steps is not counted."""
        return 0.0 if self.each == "step" else self.deviation * math.sqrt(entries)

    def channel(self, task: Task) -> Channel:
        """State the law of the noise on each message, or on each step, and the clip before it."""
        if self.off:
            return Channel()
        stages = (self.law,) if self.clip is None else (Clip(self.clip), self.law)
        return Channel(message=stages) if self.each == "message" else Channel(step=stages)

    def on_gradient(self, gradient: Gradient, local: Local) -> Gradient:
        """Add noise to the mean gradient, if every step is to have its own."""
        if self.each == "message" or self.off:
            return gradient
        mean = finite_tensors(
            gradient.mean().tensors, f"The gradient of {local.party} in round {local.round} under {self.kind}"
        )
        return Gradient(self._noisy_all(mean, local), per_example=False)

    def on_message(self, message: Message, local: Local) -> Message:
        """Add noise to every tensor, if its steps had none."""
        finite(message, self.kind)
        if self.each == "step" or self.off:
            return message
        return finite(dataclasses.replace(message, tensors=self._noisy_all(message.tensors, local)), self.kind)

    def _noisy_all(self, tensors: Tensors, local: Local) -> Tensors:
        """Return all tensors, clipped together if asked for, plus noise, each in its own precision."""
        bounded = tensors if self.clip is None else clip_message(tensors, self.clip)
        return {name: self.noisy(tensor, local.draws).to(tensors[name].dtype) for name, tensor in bounded.items()}
