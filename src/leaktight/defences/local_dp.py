"""Local differential privacy of whole messages: clip each, add noise, and count what all of them cost together."""

from __future__ import annotations

import dataclasses
from typing import ClassVar, Literal

import torch

from leaktight.channels.clip import Clip
from leaktight.channels.noise import AddNoise
from leaktight.core.channel import Channel
from leaktight.core.effect import Effect
from leaktight.core.local import SPENT, Local
from leaktight.core.message import Message
from leaktight.core.task import Task
from leaktight.defences import accountant
from leaktight.defences.clipping import clip_message, round_to
from leaktight.defences.finite import finite
from leaktight.defences.gaussian_mechanism import GaussianMechanism


class LocalDP(GaussianMechanism):
    r"""Bound a whole message and drown it in noise: whatever data a participant has, its messages look alike.

    Without it a message \(g\) goes out as it is; with it

    .. math:: \tilde g = g \min\bigl(1, \tfrac{C}{\lVert g \rVert}\bigr) + \sigma C z, \qquad z \sim N(0, I),

    over all tensors together, scalars included. Two participants' clipped messages differ by at most \(2C\), so each
    message is a Gaussian mechanism with multiplier \(\sigma / 2\) between any two data sets. The party notes
    `local_dp.epsilon`, cumulative over all its messages, `local_dp.delta`, and `local_dp.messages`, how many those are.
    Nothing is assumed about how batches are drawn. It protects a participant as a whole, not one example of many: for
    that, `dp_sgd` costs far less.

    Half precision is clipped, and the noise is added, in single precision.

    Args:
        clip: \(C\), the norm that no message exceeds, in (0, inf); less is stronger on the message, epsilon stays.
        multiplier: \(\sigma\), noise over clip, in [0, 10000]; more is stronger. At 0 messages are still clipped, and
            epsilon is infinite: there is no value that means off.
        delta: the probability with which the guarantee may fail, in (0, 1).

    Example:
        >>> from leaktight.core.budget import budgets_of
        >>> from leaktight.core.message import Kind
        >>> local = Local("client-0", seed=0)
        >>> defence = LocalDP(clip=1.0, multiplier=4.0)
        >>> message = Message(Kind.UPDATE, "client-0", "server", 0, {"weight": torch.ones(100)})
        >>> sent = defence.on_message(message, local)
        >>> print(*budgets_of(local.notes))
        epsilon at most 2.17 at delta 1e-05 (upper bound; whole messages, 1 of one participant, so that no sampling is assumed)
        >>> sent = defence.on_message(message, local)
        >>> print(*budgets_of(local.notes))
        epsilon at most 3.19 at delta 1e-05 (upper bound; whole messages, 2 of one participant, so that no sampling is assumed)

    Differs from the paper: the noise is Gaussian and accounted for by Rényi divergence, where the definition of local
    privacy is usually met with pure epsilon. Noise is drawn in floating point. Where messages really leave, it comes
    from a secret key (docs/secrets.md).

    References:
        Kasiviswanathan et al., "What Can We Learn Privately?", 2011, section 2 (local model); Mironov, "Rényi
        Differential Privacy", 2017, proposition 1 (composition) and 7 (Gaussian mechanism).
    """  # noqa: E501

    kind: Literal["local_dp"] = "local_dp"
    title: ClassVar[str] = "local DP"

    @property
    def effects(self) -> frozenset[Effect]:
        """It bounds a message, and adds noise to every entry."""
        return frozenset({"bound", "noise"}) if self.multiplier else frozenset({"bound"})

    @property
    def message_bound(self) -> float:
        """The clip."""
        return self.clip

    def noise_norm(self, entries: int) -> float:
        """Return that of Gaussian noise in units of the clip."""
        return float(self.clip * self.multiplier * entries**0.5)

    def channel(self, task: Task) -> Channel:
        """State that a message is clipped as a whole, and gets noise."""
        noise = (AddNoise(std=self.clip * self.multiplier),) if self.multiplier else ()
        return Channel(message=(Clip(self.clip), *noise))

    def on_message(self, message: Message, local: Local) -> Message:
        """Clip, add noise, and note what has been spent so far."""
        self.require_gradients(message)
        finite(message, self.kind)
        bounded = clip_message(message.tensors, self.clip)
        noise = self.clip * self.multiplier
        # Any two clipped messages lie within twice the clip: that is what the noise is measured by.
        cost = torch.tensor(accountant.step_cost(1.0, self.multiplier / 2), dtype=torch.float64)
        spent = local.memory.setdefault(SPENT, {})
        spent["costs"] = spent["costs"] + cost if "costs" in spent else cost
        spent["messages"] = spent.get("messages", 0) + 1
        local.notes["local_dp.epsilon"] = accountant.epsilon(spent["costs"].tolist(), self.delta)
        local.notes["local_dp.delta"] = self.delta
        local.notes["local_dp.messages"] = float(spent["messages"])
        noisy = {name: tensor + noise * local.draws.private_normal_like(tensor) for name, tensor in bounded.items()}
        # Half precision comes back only after the noise: what rounding does then, it does to what is private already.
        sent = {name: round_to(tensor, message.tensors[name].dtype) for name, tensor in noisy.items()}
        return finite(dataclasses.replace(message, tensors=sent), self.kind)
