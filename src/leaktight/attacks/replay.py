"""Replay: what a participant with given examples would have sent, for an attacker who knows its defence."""

from __future__ import annotations

import dataclasses
from typing import Literal

import torch
from torch import Tensor

from leaktight.attacks.local_steps import LocalSteps
from leaktight.attacks.private_state import replace_secrets
from leaktight.channels import outward, push_examples
from leaktight.core.channel import Belief, Channel, Noise, push_all
from leaktight.core.errors import Refusal
from leaktight.core.local import Memory
from leaktight.core.message import Kind, Message, Tensors
from leaktight.core.task import Task

SURROGATE, FEATURE_GRADIENT = "surrogate point", "feature gradient"
"""Unknowns beside the examples: where an update's gradient is taken, and the loss's gradient at the features."""


@dataclasses.dataclass(frozen=True)
class Replay:
    r"""A participant as the attacker models it: a differentiable map from examples to what is known of its message.

    Args:
        task: the public task, or the one that a known defence makes of it.
        kind: whether it shares a gradient or an update.
        examples: how many examples are behind a message.
        steps: the steps that an update takes.
        names: the tensors that were sent and are parameters, by wire name.
        memory: what a known defence keeps for the participant; the task's loss may read it.
        channel: what a known defence states.
        update: an update of several steps is `unrolled`, or treated as one step along the gradient of all examples at a
            `surrogate` point between the parameters before and after, which is searched jointly.
        loss: whether the loss is `known`, or its gradient at the features is one more unknown (`free`), whatever
            private loss there is.
        head_weight: how many times the plain gradient of the public head the sender's is; None if nobody can say. Then
            nothing of the head is known under a free loss.
    """

    task: Task
    kind: Kind
    examples: int
    steps: LocalSteps
    names: tuple[str, ...]
    memory: Memory = dataclasses.field(default_factory=dict, compare=False, repr=False)
    channel: Channel = dataclasses.field(default_factory=Channel, compare=False, repr=False)
    update: Literal["unrolled", "surrogate"] = "unrolled"
    loss: Literal["known", "free"] = "known"
    head_weight: float | None = None

    @property
    def matches_body(self) -> bool:
        """Whether any tensor of the body is among those that were sent."""
        return any(self.task.wire(name) in self.names for name in self.task.model.tensors() if name.startswith("body."))

    @classmethod
    def of(cls, task: Task, message: Message) -> Replay:
        """Model the sender of a message by its public facts."""
        if message.kind is Kind.UPDATE and "local_steps" not in message.facts:
            raise Refusal(
                "An update can be inverted only by an attacker who knows the local steps. Add `local_steps` to `knows` "
                "in the threat model."
            )
        wires = task.wires()
        return cls(
            task=task,
            kind=message.kind,
            examples=int(message.facts["examples"]),
            steps=LocalSteps.of(message.facts),
            names=tuple(name for name in message.tensors if name in wires),
        )

    def __call__(
        self,
        parameters: Tensors,
        inputs: Tensor,
        targets: Tensor,
        secrets: Tensors | None = None,
        choice: Tensor | None = None,
        sent: Tensors | None = None,
    ) -> Belief:
        """Return what is known of the message's tensors for these examples.

        Args:
            parameters: what the participant was sent, by wire name.
            inputs: (examples, *shape) in natural units, all local steps in order, as they were before the defence
                changed them.
            targets: a probability for each class, (examples, classes).
            secrets: the participant's private parameters by name, what is in its memory by path, and other unknowns.
            choice: (examples, outcomes), 1 for the outcome that each example is taken to have had; None where there are
                none.
            sent: the update that was sent; needed at a surrogate point.
        """
        secrets = secrets or {}
        start = self.task.model_parameters(parameters, secrets)
        used = self._change(inputs, choice)
        with replace_secrets(self.memory, secrets):
            if self.kind is Kind.GRADIENT:
                belief = self._gradient(start, used, targets, secrets)
            elif self.update == "surrogate":
                belief = self._surrogate(start, used, targets, secrets, sent or {})
            else:
                belief = self._unroll(start, used, targets, secrets)
        return push_all(self.channel.message, outward(belief, self.task.wire)).only(self.names)

    def _change(self, inputs: Tensor, choice: Tensor | None) -> Tensor:
        """Return the examples after the outcome that each is taken to have had."""
        if choice is None:
            return inputs
        # Changes are made for pixels in [0, 1]. A candidate that is outside looks to them as if cut, and still knows
        # its way back.
        pixels = inputs.detach().clamp(0, 1) + (inputs - inputs.detach())
        each = torch.stack([outcome.change(pixels) for outcome in self.channel.outcomes], 1)
        return (each * choice.view(*choice.shape, *(1,) * (inputs.dim() - 1))).sum(1)

    def _gradient(self, parameters: Tensors, inputs: Tensor, targets: Tensor, secrets: Tensors) -> Belief:
        """Return what is known of the mean gradient of a step."""
        return push_all(self.channel.step, self._clean(parameters, inputs, targets, secrets))

    def _clean(self, parameters: Tensors, inputs: Tensor, targets: Tensor, secrets: Tensors) -> Belief:
        """Return what is known of the mean gradient, after what the defence does to each example's own."""
        if not self.channel.example:
            return Belief(self._mean(parameters, inputs, targets, secrets), examples=len(inputs))
        each = torch.func.vmap(lambda example, target: self._mean(parameters, example[None], target[None], secrets))(
            inputs, targets
        )
        return push_examples(self.channel.example, each)

    def _mean(self, parameters: Tensors, inputs: Tensor, targets: Tensor, secrets: Tensors) -> dict[str, Tensor]:
        if self.loss == "free":
            return self._free_mean(parameters, inputs, targets, secrets)

        def loss(tensors: dict[str, Tensor]) -> Tensor:
            return self.task.loss(self.task.forward(tensors, inputs), targets).mean()

        gradients: dict[str, Tensor] = torch.func.grad(loss)(dict(parameters))
        return gradients

    def _free_mean(self, parameters: Tensors, inputs: Tensor, targets: Tensor, secrets: Tensors) -> dict[str, Tensor]:
        """Return the mean gradient of the body by that at the features, and of the head by the public loss."""
        body, head = ({n: t for n, t in parameters.items() if n.startswith(part)} for part in ("body.", "head."))
        gradients: dict[str, Tensor] = {name: torch.zeros_like(tensor) for name, tensor in parameters.items()}

        def at_features(tensors: dict[str, Tensor]) -> Tensor:
            features = features_of(self.task, tensors, inputs)
            return (features * secrets[FEATURE_GRADIENT].view_as(features)).sum() / len(inputs)

        def at_outputs(tensors: dict[str, Tensor]) -> Tensor:
            own = {name.removeprefix("head."): tensor for name, tensor in tensors.items()}
            outputs = torch.func.functional_call(self.task.model.head, own, (features_of(self.task, body, inputs),))
            return (self.head_weight or 0.0) * self.task.loss(outputs, targets).mean()

        if self.matches_body:
            gradients |= torch.func.grad(at_features)(body)
        if self.head_weight is not None and head:
            gradients |= torch.func.grad(at_outputs)(head)
        return gradients

    def _unroll(self, start: Tensors, inputs: Tensor, targets: Tensor, secrets: Tensors) -> Belief:
        """Return what is known of an update, step by step."""
        current, moments = dict(start), self.steps.moments(start)
        noise: dict[str, Noise] = {}
        batches = zip(self.steps.split(inputs), self.steps.split(targets), strict=True)
        for step, (batch, labels) in enumerate(batches, start=1):
            belief = self._gradient(current, batch, labels, secrets)
            if belief.masks:
                raise Refusal(
                    "Steps of which only some entries are used cannot be unrolled. Attack the gradient of one step "
                    "instead."
                )
            moves, moments = self.steps.move(self.steps.decay(belief.means, current), moments, step)
            current = {name: tensor + moves[name] for name, tensor in current.items()}
            moved = {name: self.steps.noise(belief.noise_of(name), belief.means[name], step) for name in belief.noise}
            noise = {name: noise.get(name, Noise()) + each for name, each in moved.items()}
        return Belief({name: current[name] - start[name] for name in start}, noise, examples=self.examples)

    def _surrogate(self, start: Tensors, inputs: Tensor, targets: Tensor, secrets: Tensors, sent: Tensors) -> Belief:
        """Return what is known of an update that is treated as one step along the gradient at a point on its way."""
        share = torch.sigmoid(secrets[SURROGATE])
        wire = {name: self.task.wire(name) for name in start}
        point = {n: t + share * sent[w] if (w := wire[n]) is not None and w in sent else t for n, t in start.items()}
        clean = self._clean(point, inputs, targets, secrets)
        # The noise of a step is that of its share of the examples, and each step has its own.
        step = push_all(self.channel.step, dataclasses.replace(clean, examples=self.examples // self.steps.count))
        noise: dict[str, Noise] = {}
        for number in range(1, self.steps.count + 1):
            each = {name: self.steps.noise(step.noise_of(name), step.means[name], number) for name in step.noise}
            noise = {name: noise.get(name, Noise()) + each[name] for name in each}
        return Belief(self.steps.average_move(self.steps.decay(step.means, point)), noise, examples=self.examples)


def features_of(task: Task, tensors: Tensors, inputs: Tensor) -> Tensor:
    """Return what the head sees, with these parameters in place of the model's own."""
    body = {name.removeprefix("body."): tensor for name, tensor in tensors.items() if name.startswith("body.")}
    features: Tensor = torch.func.functional_call(task.model.body, body, (task.model.normalise(inputs),))
    return features
