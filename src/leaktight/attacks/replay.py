"""Replay: what a participant with these examples would have sent. Differentiable in the examples, for one victim."""

from __future__ import annotations

import dataclasses

import torch
from torch import Tensor

from leaktight.attacks.secret import holding
from leaktight.core.errors import Refusal
from leaktight.core.local import Memory
from leaktight.core.message import Kind, Message, Tensors
from leaktight.core.task import Task


@dataclasses.dataclass(frozen=True)
class Replay:
    """A participant as the attacker models it.

    Args:
        task: the public task, or the one that a known defence makes of it.
        kind: whether it shares a gradient or an update.
        examples: how many examples are behind a message.
        local_steps: how many plain gradient steps an update takes.
        learning_rate: the size of each step.
        momentum: how much of the last step is kept.
        names: the tensors that were sent, by wire name.
        memory: what a known defence keeps for the participant; the task's loss may read it.
    """

    task: Task
    kind: Kind
    examples: int
    local_steps: int
    learning_rate: float
    momentum: float
    names: tuple[str, ...]
    memory: Memory = dataclasses.field(default_factory=dict, compare=False, repr=False)

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
            inputs: (examples, *shape), all local steps in order.
            targets: a probability for each class, (examples, classes).
            secrets: the participant's private parameters by name, and what is in its memory by path.
        """
        start = self.task.named(parameters, secrets)
        with holding(self.memory, secrets or {}):
            sent = self.task.outward((self._gradient if self.kind is Kind.GRADIENT else self._update)(start, inputs, targets))
        return {name: sent[name] for name in self.names}

    def _gradient(self, parameters: dict[str, Tensor], inputs: Tensor, targets: Tensor) -> dict[str, Tensor]:
        def loss(tensors: dict[str, Tensor]) -> Tensor:
            return self.task.loss(self.task.forward(tensors, inputs), targets).mean()

        found: dict[str, Tensor] = torch.func.grad(loss)(parameters)
        return found

    def _update(self, start: dict[str, Tensor], inputs: Tensor, targets: Tensor) -> dict[str, Tensor]:
        current, velocity = start, {name: torch.zeros_like(tensor) for name, tensor in start.items()}
        batches = zip(inputs.chunk(self.local_steps), targets.chunk(self.local_steps), strict=True)
        for batch_inputs, batch_targets in batches:
            gradient = self._gradient(current, batch_inputs, batch_targets)
            velocity = {name: self.momentum * velocity[name] + gradient[name] for name in current}
            current = {name: tensor - self.learning_rate * velocity[name] for name, tensor in current.items()}
        return {name: current[name] - start[name] for name in start}
