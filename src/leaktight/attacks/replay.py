"""Replay: what a participant with given examples would have sent, for an attacker who knows its defence."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
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
from leaktight.core.training_mode import Dropped

SURROGATE, FEATURE_GRADIENT, MASK = "surrogate point", "feature gradient", "dropout "
"""Unknowns beside the examples: where an update's gradient is taken, and the loss's gradient at the features.

The last is how the names of what dropout left begin.
"""


@dataclasses.dataclass(frozen=True)
class Replay:
    r"""A participant as the attacker models it: a differentiable map from examples to what is known of its message.

    Args:
        task: the public task, or the one that a known defence makes of it.
        kind: whether it shares a gradient or an update.
        examples: how many examples are behind a message.
        steps: the steps that an update takes.
        names: the tensors that were sent and can be replayed, by wire name: parameters, and running statistics of batch
            norm in training mode.
        memory: what a known defence keeps for the participant; the task's loss may read it.
        channel: what a known defence states.
        update: an update of several steps is `unrolled`, or treated as one step along the gradient of all examples at a
            `surrogate` point between the parameters before and after, which is searched jointly.
        loss: whether the loss is `known`, or its gradient at the features is one more unknown (`free`), whatever
            private loss there is.
        head_weight: how many times the plain gradient of the public head the sender's is; None if nobody can say. Then
            nothing of the head is known under a free loss.
        dropped: what the sender's dropout drops, for each use of a layer. What it left of each example is one more
            unknown: a share of each entry, in (0, 1), where the real one is all or nothing. Without a value for it,
            dropout does what it does on average.
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
    dropped: Mapping[str, Dropped] = dataclasses.field(default_factory=dict, compare=False, repr=False)

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
        wires = task.wires() | task.public_running().keys()
        return cls(
            task=task,
            kind=message.kind,
            examples=int(message.facts["examples"]),
            steps=LocalSteps.of(message.facts),
            names=tuple(name for name in message.tensors if name in wires),
            dropped=task.dropouts(),
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
        running = self.task.model_running(parameters)
        batch = _Batch(self._change(inputs, choice), targets, self._masks(secrets))
        with replace_secrets(self.memory, secrets):
            if self.kind is Kind.GRADIENT:
                belief, after = self._gradient(start, batch, secrets, running)
            elif self.update == "surrogate":
                belief, after = self._surrogate(start, batch, secrets, sent or {}), running
            else:
                belief, after = self._unroll(start, batch, secrets, running)
        # What a defence does to steps it does to gradients alone; what it does to messages, to all that is in them.
        changes = {name: after[name] - running[name] for name in running}
        whole = dataclasses.replace(belief, means={**belief.means, **changes})
        return push_all(self.channel.message, outward(whole, self.task.wire)).only(self.names)

    def _masks(self, secrets: Tensors) -> dict[str, Tensor]:
        """Return what dropout multiplies by, as far as a candidate says what it left."""
        return {
            use: dropped.scale(torch.sigmoid(secrets[MASK + use]))
            for use, dropped in self.dropped.items()
            if MASK + use in secrets
        }

    def _change(self, inputs: Tensor, choice: Tensor | None) -> Tensor:
        """Return the examples after the outcome that each is taken to have had."""
        if choice is None:
            return inputs
        # Changes are made for pixels in [0, 1]. A candidate that is outside looks to them as if cut, and still knows
        # its way back.
        pixels = inputs.detach().clamp(0, 1) + (inputs - inputs.detach())
        each = torch.stack([outcome.change(pixels) for outcome in self.channel.outcomes], 1)
        return (each * choice.view(*choice.shape, *(1,) * (inputs.dim() - 1))).sum(1)

    def _gradient(
        self, parameters: Tensors, batch: _Batch, secrets: Tensors, running: Tensors
    ) -> tuple[Belief, Tensors]:
        """Return what is known of the mean gradient of a step, and the running statistics after it."""
        clean, after = self._clean(parameters, batch, secrets, running)
        return push_all(self.channel.step, clean), after

    def _clean(self, parameters: Tensors, batch: _Batch, secrets: Tensors, running: Tensors) -> tuple[Belief, Tensors]:
        """Return what is known of the mean gradient, after what the defence does to each example's own."""
        if not self.channel.example:
            gradients, after = self._mean(parameters, batch, secrets, running)
            return Belief(gradients, examples=len(batch.inputs)), after
        each = torch.func.vmap(
            lambda example, target, masks: self._mean(
                parameters,
                _Batch(example[None], target[None], {use: mask[None] for use, mask in masks.items()}),
                secrets,
                {},
            )[0]
        )(batch.inputs, batch.targets, dict(batch.masks))
        return push_examples(self.channel.example, each), running

    def _mean(
        self, parameters: Tensors, batch: _Batch, secrets: Tensors, running: Tensors
    ) -> tuple[dict[str, Tensor], Tensors]:
        if self.loss == "free":
            return self._free_mean(parameters, batch.inputs, batch.targets, secrets), running

        def loss(tensors: dict[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
            outputs, left = self.task.training_forward(tensors, batch.inputs, batch.masks, running)
            return self.task.loss(outputs, batch.targets).mean(), left.running

        gradients: dict[str, Tensor]
        gradients, after = torch.func.grad(loss, has_aux=True)(dict(parameters))
        return gradients, after

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

    def _unroll(self, start: Tensors, batch: _Batch, secrets: Tensors, running: Tensors) -> tuple[Belief, Tensors]:
        """Return what is known of an update, step by step, and the running statistics after it."""
        current, moments = dict(start), self.steps.moments(start)
        noise: dict[str, Noise] = {}
        for step, part in enumerate(batch.split(self.steps), start=1):
            belief, running = self._gradient(current, part, secrets, running)
            if belief.masks:
                raise Refusal(
                    "Steps of which only some entries are used cannot be unrolled. Attack the gradient of one step "
                    "instead."
                )
            moves, moments = self.steps.move(self.steps.decay(belief.means, current), moments, step)
            current = {name: tensor + moves[name] for name, tensor in current.items()}
            moved = {name: self.steps.noise(belief.noise_of(name), belief.means[name], step) for name in belief.noise}
            noise = {name: noise.get(name, Noise()) + each for name, each in moved.items()}
        moved_by = {name: current[name] - start[name] for name in start}
        return Belief(moved_by, noise, examples=self.examples), running

    def _surrogate(self, start: Tensors, batch: _Batch, secrets: Tensors, sent: Tensors) -> Belief:
        """Return what is known of an update that is treated as one step along the gradient at a point on its way."""
        share = torch.sigmoid(secrets[SURROGATE])
        wire = {name: self.task.wire(name) for name in start}
        point = {n: t + share * sent[w] if (w := wire[n]) is not None and w in sent else t for n, t in start.items()}
        clean, _ = self._clean(point, batch, secrets, {})
        # The noise of a step is that of its share of the examples, and each step has its own.
        step = push_all(self.channel.step, dataclasses.replace(clean, examples=self.examples // self.steps.count))
        noise: dict[str, Noise] = {}
        for number in range(1, self.steps.count + 1):
            each = {name: self.steps.noise(step.noise_of(name), step.means[name], number) for name in step.noise}
            noise = {name: noise.get(name, Noise()) + each[name] for name in each}
        return Belief(self.steps.average_move(self.steps.decay(step.means, point)), noise, examples=self.examples)


@dataclasses.dataclass(frozen=True)
class _Batch:
    """The examples of one step: inputs, label probabilities, and what dropout multiplies by, a row for each example."""

    inputs: Tensor
    targets: Tensor
    masks: Tensors

    def split(self, steps: LocalSteps) -> list[_Batch]:
        """Return the examples of each step."""
        masks = {use: steps.split(mask) for use, mask in self.masks.items()}
        pairs = zip(steps.split(self.inputs), steps.split(self.targets), strict=True)
        return [
            _Batch(inputs, targets, {use: parts[number] for use, parts in masks.items()})
            for number, (inputs, targets) in enumerate(pairs)
        ]


def features_of(task: Task, tensors: Tensors, inputs: Tensor) -> Tensor:
    """Return what the head sees, with these parameters in place of the model's own."""
    body = {name.removeprefix("body."): tensor for name, tensor in tensors.items() if name.startswith("body.")}
    features: Tensor = torch.func.functional_call(task.model.body, body, (task.model.normalise(inputs),))
    return features
