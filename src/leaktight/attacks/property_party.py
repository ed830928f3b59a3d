"""Property party: a participant who makes the shared model tell examples with a property from those without."""

from __future__ import annotations

import dataclasses

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call

from leaktight.core.draws import Draws
from leaktight.core.errors import Refusal
from leaktight.core.local import Local
from leaktight.core.message import Kind, Message
from leaktight.core.party import Seat
from leaktight.core.task import Batch, Model

SCOPE = "property_inference"
_BATCH, _RATE = 32, 0.1
"""How many of its own examples it learns the property from in a turn, and how fast its second head does."""


@dataclasses.dataclass
class PropertyParty:
    r"""A participant that follows the protocol, and adds the gradient of a second task to what it shares.

    It has a head of its own on the shared features, which tells who of its own examples has the property. To its
    message it adds \(\alpha \nabla_\theta L_{property}\) in the shared parameters below the head, as a gradient, or as
    the step that it would be in an update; the second head stays in the memory of its seat.

    Args:
        weight: \(\alpha\); more makes the shared model learn the property faster, and its own task worse.
        seat: its seat, whose honest owner trains for it.
    """

    weight: float
    seat: Seat

    @property
    def name(self) -> str:
        """The name of its seat."""
        return self.seat.name

    def respond(self, message: Message) -> Message:
        """Answer as the honest owner does, with the second task's gradient on top."""
        sent = self.seat.honest.respond(message)
        own = self.seat.local.scope(SCOPE)
        extra = self._second_task(message, own)
        step = self.weight
        if sent.kind is Kind.UPDATE:
            step *= -sent.facts.get("learning_rate", 1.0) * sent.facts.get("local_steps", 1.0)
        tensors = {
            name: tensor + step * extra[name] if name in extra else tensor for name, tensor in sent.tensors.items()
        }
        return dataclasses.replace(sent, tensors=tensors)

    def close(self) -> Message | None:
        """Reveal what the honest owner would."""
        return self.seat.honest.close()

    def _second_task(self, message: Message, own: Local) -> dict[str, Tensor]:
        """Return the gradient of the second task by wire name, and let the second head follow its own."""
        task = self.seat.task
        batch, target = _draw(self.seat.data, own.draws)
        parameters = task.model_parameters(message.tensors)
        leaves = {name: tensor.detach().clone().requires_grad_(True) for name, tensor in parameters.items()}
        inside = {f"model.{name}": leaf for name, leaf in leaves.items()}
        features = functional_call(_Features(task.model), inside, (batch.inputs,)).flatten(1)
        head: Tensor = own.memory.get("head", features.new_zeros(features.shape[1] + 1))
        head = head.detach().clone().requires_grad_(True)
        loss = F.binary_cross_entropy_with_logits(features @ head[:-1] + head[-1], target.to(features))
        found = torch.autograd.grad(loss, [head, *leaves.values()], allow_unused=True)
        own.memory["head"] = (head - _RATE * found[0]).detach() if found[0] is not None else head.detach()
        gradients = {name: slope for name, slope in zip(leaves, found[1:], strict=True) if slope is not None}
        return task.outward(gradients)


class _Features(nn.Module):
    """What the head of a model sees."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.model = model

    def forward(self, inputs: Tensor) -> Tensor:
        return self.model.features(inputs)


def _draw(data: Batch, draws: Draws) -> tuple[Batch, Tensor]:
    """Return examples of its own, half of them with the property, and which."""
    if data.properties is None:
        raise Refusal(
            "property_inference takes part with examples of which it knows who has the property. The data has no "
            "private property; set `private_property`."
        )
    sides = [(data.properties == kind).nonzero()[:, 0].cpu() for kind in (1, 0)]
    if not all(map(len, sides)):
        raise Refusal(
            "property_inference takes part with examples of its own with the property and without. Got one kind alone "
            "in its seat; take another one."
        )
    places = torch.cat([side[draws.integers(len(side), (_BATCH // 2,))] for side in sides])
    batch = data.take(places.to(data.labels.device))
    return batch, torch.tensor([1.0] * (_BATCH // 2) + [0.0] * (_BATCH // 2))
