"""Sealing: some layers are trained together, and nobody sees their gradients."""

from __future__ import annotations

import dataclasses
from typing import ClassVar, Literal

from leaktight.channels.layers import Drop
from leaktight.core.channel import Channel
from leaktight.core.defence import Defence
from leaktight.core.local import Local
from leaktight.core.message import Message
from leaktight.core.task import Task
from leaktight.defences.finite import finite, finite_tensors
from leaktight.defences.withhold import require_layers


class Sealed(Defence):
    r"""Train some layers inside trusted enclaves: the model learns as without a defence, and nobody sees these layers.

    Without it a message shows the gradient or update \(g_l\) of every layer \(l\); with it, for the sealed layers S,

    .. math:: \tilde g = \{ g_l : l \notin S \}, \qquad \bar g_l = \frac1n \sum_i g_l^i \text{ for all } l,

    where \(\tilde g\) is what the server's operator and everybody else sees of a message, and \(\bar g\) what an
    enclave at the server aggregates. The other layers' gradients come from the same examples and still reveal them.

    It says what an enclave is worth, and is none: audits and simulations leave sealed layers out of what an attacker
    sees; where messages really leave, as on Flower, it refuses. Bugs and side channels of real enclaves are not in it.

    The attacker is given the sealed layers' parameters as they were handed out, so that it can play messages of its
    own, and is not given what they say of the round before: a real enclave must hide them, or make differences of them
    useless, as whoever knows a layer before and after a round knows the mean of what was sealed.

    Args:
        layers: which layers, by wire name without its last part, as `body.linear1`; empty for all that there are.
            Inside `layer_guard` leave it empty: the guard hands over the tensors of its layers only.

    Example:
        >>> import torch
        >>> from leaktight.core.message import Kind
        >>> tensors = {"body.linear1.weight": torch.ones(2, 2), "head.weight": torch.ones(3, 2)}
        >>> message = Message(Kind.GRADIENT, "client-0", "server", 0, tensors)
        >>> sent = Sealed(layers=("head",)).on_message(message, Local("client-0", seed=0))
        >>> list(sent.tensors), list(sent.whole())
        (['body.linear1.weight'], ['body.linear1.weight', 'head.weight'])

    Differs from the paper: it proposes enclaves, or encryption, for the most sensitive layers and builds neither.

    References:
        Mo et al., "Layer-wise Characterization of Latent Information Leakage in Federated Learning", 2021, section 7;
        Mo et al., "DarkneTZ: Towards Model Privacy at the Edge using Trusted Execution Environments", 2020.
    """

    kind: Literal["sealed"] = "sealed"
    title: ClassVar[str] = "sealing"
    layers: tuple[str, ...] = ()

    @property
    def withholds(self) -> bool:
        """Always: what is sealed is in no message that anybody sees."""
        return True

    @property
    def memoryless(self) -> bool:
        """It seals the same layers of every message."""
        return True

    def channel(self, task: Task) -> Channel:
        """State which layers are not seen."""
        return Channel(message=(Drop(self.layers),))

    def on_message(self, message: Message, local: Local) -> Message:
        """Move the tensors of these layers, or all, out of sight."""
        require_layers(self.kind, self.layers, message, local)
        gone = Drop(self.layers)
        hidden = {name: tensor for name, tensor in message.tensors.items() if gone.drops(name)}
        seen = {name: tensor for name, tensor in message.tensors.items() if name not in hidden}
        # What is aggregated must be as sound as what is seen.
        finite_tensors(hidden, f"The sealed part of the {message.kind} of {message.sender} in round {message.round}")
        sent = dataclasses.replace(message, tensors=seen, sealed={**message.sealed, **hidden})
        return finite(sent, self.kind)
