"""Withholding: tensors of some layers do not go out at all."""

from __future__ import annotations

import dataclasses
from typing import ClassVar, Literal

from pydantic import Field

from leaktight.channels.layers import Drop
from leaktight.core.channel import Channel
from leaktight.core.defence import Defence
from leaktight.core.errors import Refusal, unknown
from leaktight.core.local import Local
from leaktight.core.message import Kind, Message, layer_of
from leaktight.core.task import Task
from leaktight.defences.finite import finite


class Withhold(Defence):
    r"""Leave layers out of every message, for whoever would rather not train them together than show their gradients.

    Without it a message holds the gradient or update \(g_l\) of every layer \(l\); with it those of the withheld layers
    W are not there:

    .. math:: \tilde g = \{ g_l : l \notin W \}, \qquad \theta_l \leftarrow \theta_l \text{ for } l \in W.

    All participants withhold the same layers, and the server keeps their parameters as they are: these layers stay at
    their initial values, whatever the others learn around them. In the local steps behind an update they move along,
    and that is dropped with the message. Nothing is said about a withheld layer, but the other layers' gradients come
    from the same examples and still reveal them.

    Running statistics of batch norm go out along with a message, and are withheld like every other tensor of their
    layer; `parts` names them alone. The server then keeps those that it has.

    Args:
        layers: which layers, by wire name without its last part, as `body.linear1`; empty for all that there are, so
            that nothing goes out and nothing is learned. Inside `layer_guard` leave it empty: the guard hands over the
            tensors of its layers only.
        parts: which tensors of those layers, by the last part of their wire names, as `running_mean`; empty for all.

    Example:
        >>> import torch
        >>> tensors = {"body.linear1.weight": torch.ones(2, 2), "head.weight": torch.ones(3, 2)}
        >>> message = Message(Kind.GRADIENT, "client-0", "server", 0, tensors)
        >>> list(Withhold(layers=("head",)).on_message(message, Local("client-0", seed=0)).tensors)
        ['body.linear1.weight']

    Differs from the paper: it proposes to run the most sensitive layers inside a trusted execution environment, or to
    encrypt them, so that they are trained but not seen. Here there is no such environment: what is not seen is not
    trained either.

    References:
        Mo et al., "Layer-wise Characterization of Latent Information Leakage in Federated Learning", 2021, section 7.
    """

    kind: Literal["withhold"] = "withhold"
    title: ClassVar[str] = "withholding"
    layers: tuple[str, ...] = ()
    parts: tuple[str, ...] = Field((), exclude_if=lambda parts: not parts)

    @property
    def withholds(self) -> bool:
        """Always."""
        return True

    @property
    def memoryless(self) -> bool:
        """It leaves out the same layers of every message."""
        return True

    def channel(self, task: Task) -> Channel:
        """State which layers do not come."""
        return Channel(message=(Drop(self.layers, self.parts),))

    def on_message(self, message: Message, local: Local) -> Message:
        """Drop the tensors of these layers, or all."""
        if message.kind not in (Kind.GRADIENT, Kind.UPDATE):
            raise Refusal(
                f"{self.kind} leaves layers out of gradients and updates. Got a message of kind {message.kind} "
                "instead, without which the other party cannot continue."
            )
        known = dict.fromkeys(map(layer_of, message.tensors))
        for layer in self.layers:
            if layer in known:
                continue
            # A part of which something goes out is a group of layers, whose own names are to be given.
            if layer in local.parts and not any(other.startswith(f"{layer}.") for other in known):
                raise Refusal(
                    f"{self.kind} leaves out layers of a message. Got `{layer}`, which another defence has kept back "
                    "from it."
                )
            raise unknown("layer", layer, known)
        names = {name.rpartition(".")[2] for name in message.tensors}
        for part in self.parts:
            if part not in names:
                raise unknown("part of a layer", part, names)
        gone = Drop(self.layers, self.parts)
        sent = {name: tensor for name, tensor in message.tensors.items() if not gone.drops(name)}
        return finite(dataclasses.replace(message, tensors=sent), self.kind)
