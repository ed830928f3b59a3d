"""Replay: what a participant with these examples would have sent. Differentiable in the examples, for one victim."""

from __future__ import annotations

import dataclasses

import torch
from torch import Tensor

from leaktight.attacks.outcome import Changing
from leaktight.attacks.secret import holding
from leaktight.core.defence import Defence
from leaktight.core.errors import Refusal
from leaktight.core.local import Memory
from leaktight.core.message import Kind, Message, Tensors
from leaktight.core.task import Task
from leaktight.defences.transformation import Transformation
from leaktight.transforms.outcome import Outcome

_HOOKS = frozenset({"on_task", "on_batch", "on_gradient", "on_message"})
"""Where a party may change what it sends."""


def replayable(defence: Defence) -> bool:
    """Return whether a participant under this defence can be replayed: whether it changes nothing but its task, and its examples in a known way.

    Noise on a gradient, and what is done to a message, are not replayed.

    Args:
        defence: a single defence, no chain.

    Example:
        >>> from leaktight.defences import GaussianNoise, Polarization
        >>> replayable(Polarization()), replayable(GaussianNoise()), replayable(Transformation(policy="3-1", crop_flip=True))
        (True, False, False)
    """
    acts = defence.hooks() & _HOOKS
    if not acts or acts & {"on_gradient", "on_message"}:
        return False
    stated = defence.states_all if isinstance(defence, Transformation) else isinstance(defence, Changing)
    return stated or "on_batch" not in acts


@dataclasses.dataclass(frozen=True)
class Replay:
    r"""A participant as the attacker models it.

    Of one that changes its examples by outcomes \(t_o\) of weight \(w_o\), each step takes the expected gradient,

    .. math:: \sum_o \frac{w_o}{\sum w} \, \frac1n \sum_i \nabla_\theta \, \ell(f_\theta(t_o(x_i)), y_i),

    which for a gradient is the expected message even though every example has a draw of its own, and for an update of several
    steps, in each of which examples are changed anew, is it to first order.

    Args:
        task: the public task, or the one that a known defence makes of it.
        kind: whether it shares a gradient or an update.
        examples: how many examples are behind a message.
        local_steps: how many plain gradient steps an update takes.
        learning_rate: the size of each step.
        momentum: how much of the last step is kept.
        names: the tensors that were sent, by wire name.
        memory: what a known defence keeps for the participant; the task's loss may read it.
        changes: what a known defence may make of the examples, which are then meant as they were before; none if it leaves them.
    """

    task: Task
    kind: Kind
    examples: int
    local_steps: int
    learning_rate: float
    momentum: float
    names: tuple[str, ...]
    memory: Memory = dataclasses.field(default_factory=dict, compare=False, repr=False)
    changes: tuple[Outcome, ...] = dataclasses.field(default=(), compare=False, repr=False)

    @classmethod
    def of(cls, task: Task, message: Message) -> Replay:
        """Model the sender of a message by its public facts."""
        if message.kind is Kind.UPDATE and "local_steps" not in message.facts:
            raise Refusal(
                "An update can be inverted only by an attacker who knows the local steps. Add `local_steps` to `knows` in the threat model."
            )
        if message.facts.get("adaptive"):
            raise Refusal(
                "An update that was made by Adam cannot be replayed yet. Let participants use `sgd`, with or without momentum."
            )
        return cls(
            task=task,
            kind=message.kind,
            examples=int(message.facts["examples"]),
            local_steps=int(message.facts.get("local_steps", 1)),
            learning_rate=message.facts.get("learning_rate", 1.0),
            momentum=message.facts.get("momentum", 0.0),
            names=tuple(message.tensors),
        )

    def __call__(
        self, parameters: Tensors, inputs: Tensor, targets: Tensor, secrets: Tensors | None = None
    ) -> dict[str, Tensor]:
        """Return the message's tensors for these examples.

        Args:
            parameters: what the participant was sent, by wire name.
            inputs: (examples, *shape) in natural units, all local steps in order.
            targets: a probability for each class, (examples, classes).
            secrets: the participant's private parameters by name, and what is in its memory by path.
        """
        start = self.task.named(parameters, secrets)
        with holding(self.memory, secrets or {}):
            sent = self.task.outward((self._gradient if self.kind is Kind.GRADIENT else self._update)(start, inputs, targets))
        return {name: sent[name] for name in self.names}

    def _gradient(self, parameters: dict[str, Tensor], inputs: Tensor, targets: Tensor) -> dict[str, Tensor]:
        used, wanted = self._used(inputs), targets.repeat(len(self.changes), 1) if self.changes else targets

        def loss(tensors: dict[str, Tensor]) -> Tensor:
            return self._expected(self.task.loss(self.task.forward(tensors, used), wanted))

        found: dict[str, Tensor] = torch.func.grad(loss)(parameters)
        return found

    def _used(self, inputs: Tensor) -> Tensor:
        """Return the examples after each change, one change after the other."""
        if not self.changes:
            return inputs
        # Changes are made for pixels in [0, 1]. A candidate that is outside looks to them as if cut, and still knows its way back.
        pixels = inputs.detach().clamp(0, 1) + (inputs - inputs.detach())
        return torch.cat([outcome.change(pixels) for outcome in self.changes])

    def _expected(self, losses: Tensor) -> Tensor:
        """Return the mean loss over examples and changes."""
        if not self.changes:
            return losses.mean()
        total = sum(outcome.weight for outcome in self.changes)
        means = losses.view(len(self.changes), -1).mean(1)
        return torch.stack([one.weight / total * mean for one, mean in zip(self.changes, means, strict=True)]).sum()

    def _update(self, start: dict[str, Tensor], inputs: Tensor, targets: Tensor) -> dict[str, Tensor]:
        current, velocity = start, {name: torch.zeros_like(tensor) for name, tensor in start.items()}
        batches = zip(inputs.chunk(self.local_steps), targets.chunk(self.local_steps), strict=True)
        for batch_inputs, batch_targets in batches:
            gradient = self._gradient(current, batch_inputs, batch_targets)
            velocity = {name: self.momentum * velocity[name] + gradient[name] for name in current}
            current = {name: tensor - self.learning_rate * velocity[name] for name, tensor in current.items()}
        return {name: current[name] - start[name] for name in start}
