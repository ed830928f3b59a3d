"""The honest participant of a federation.

It receives parameters, trains on its own data, and sends a gradient or an update.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Literal

import torch
from torch import Tensor

from leaktight.core.defence import Defence, Gradient
from leaktight.core.errors import InvalidValue
from leaktight.core.local import Local
from leaktight.core.message import Kind, Message, Tensors, layer_of
from leaktight.core.run import GroundTruth
from leaktight.core.sampling import KnownBatch, Poisson, Sampling
from leaktight.core.task import Batch, Task
from leaktight.learning.collaborative import Sharing
from leaktight.learning.gradient import gradient, require_covered_buffers, require_each_once
from leaktight.learning.optimiser import Optimiser, Sgd, restore_moments, take_moments
from leaktight.learning.schedule import Schedule, Shuffled

Batching = Literal["schedule", "poisson", "attacked"]


@dataclasses.dataclass
class Client:
    """A participant that follows the protocol.

    Between messages it holds nothing but its `Local`, so a backend whose processes come and go can rebuild it: the
    batches of a round follow from the seed, the name and the round; private parameters live in
    `local.memory["private"]`.

    Differs from the paper: McMahan et al. (2017) take plain local steps. With momentum or Adam, a participant's moments
    start from zero in every round, those of its private parameters too, unless it keeps them: they then lie in
    `local.memory["moments"]`. The server's own moments, under `fedsgd`, are kept.

    Args:
        name: the name it sends under.
        public: the agreed task.
        data: what it owns.
        defence: what it does about leakage.
        local: what it never sends.
        batch_size: examples per local step; a participant with fewer uses all it has. Under Poisson sampling, the
            expected number.
        local_steps: steps between two messages. With `shares` gradient it must be 1.
        optimiser: for local steps, and for private parameters.
        shares: whether a message is the gradient of one step, or the update of several.
        schedule: which examples are in the batch of a step, unless they are sampled.
        batching: where the examples of a step come from: the `schedule`; `poisson`, each by a draw of its own; or
            `attacked`, the schedule's for a message that only an audit asks for.
        sharing: which part of the parameters it takes over, and which part of an update it hands in.
        keep_moments: whether what its optimiser remembers of each parameter lasts from round to round.
    """

    name: str
    public: Task
    data: Batch
    defence: Defence
    local: Local
    batch_size: int = 32
    local_steps: int = 1
    optimiser: Optimiser = dataclasses.field(default_factory=Sgd)
    shares: Kind = Kind.GRADIENT
    schedule: Schedule = dataclasses.field(default_factory=Shuffled)
    sharing: Sharing = dataclasses.field(default_factory=Sharing)
    batching: Batching = "schedule"
    keep_moments: bool = False

    def __post_init__(self) -> None:
        if self.shares is Kind.GRADIENT and self.local_steps != 1:
            raise InvalidValue(
                f"A client that shares gradients must take 1 local step. Got {self.local_steps} instead; share updates."
            )
        self.local.now.examples = len(self.data)
        self.local.now.classes = tuple(map(int, torch.unique(self.data.labels).tolist()))
        self.local.now.parts = self.public.model.parts()
        self.task = self.defence.on_task(self.public, self._own())
        require_covered_buffers(self.defence, self.task)

    def respond(self, message: Message) -> Message:
        """Train from the received parameters and answer with what the protocol shares."""
        return self.answer(message).sent

    def answer(self, message: Message) -> GroundTruth:
        """Respond, and return both sides of the answer; only the party itself and an audit may see the private one."""
        self.local.begin(message.round)
        taken = self.sharing.select_download(message.tensors, self.local)
        start = self.task.model_parameters(taken, self.local.memory.get("private"))
        leaves = {name: tensor.clone().requires_grad_(True) for name, tensor in start.items()}
        steps = self.optimiser.at(message.round).over(leaves.values())
        if self.keep_moments:
            restore_moments(steps, leaves, self.local.memory.get("moments", {}))
        before = self.task.model_running(taken)
        running: Tensors = before
        raws, useds, all_masks, batches, shared = [], [], [], [], dict[str, Tensor]()
        for number, (raw, sampling) in enumerate(self._draw_batches(message.round)):
            self.local.now.sampling = sampling
            used, masks = self._prepare(raw, number)
            left = gradient(self.task, leaves, used, per_example=self.defence.per_example, masks=masks, running=running)
            shared = self._step(leaves, left, steps)
            running = left.running
            raws.append(raw)
            useds.append(used)
            all_masks.append(masks)
            batches.append(left.batch)
        end = {name: tensor.detach() for name, tensor in leaves.items()}
        self.local.memory["private"] = {name: end[name] for name in end if self.task.wire(name) is None}
        if self.keep_moments:
            self.local.memory["moments"] = take_moments(steps, leaves)
        if self.shares is Kind.UPDATE:
            shared = {name: end[name] - start[name] for name in end}
        shared = {**shared, **{name: running[name] - before[name] for name in running}}
        raw_batch, used_batch = Batch.join(raws), Batch.join(useds)
        self.local.now.batch = used_batch
        tensors = {name: tensor.detach() for name, tensor in self.task.outward(shared).items()}
        if self.shares is Kind.UPDATE:
            tensors = self.sharing.select_upload(tensors, self.local)
        clean = Message(
            self.shares, self.name, message.sender, message.round, tensors, self._facts(used_batch, message.round)
        )
        sent = self.defence.on_message(clean, self._own())
        arrived = self.task.outward({**end, **running})
        self.sharing.remember(message.tensors, taken, arrived, sent.whole(), self.local)
        private = {name: tensor for name, tensor in start.items() if self.task.wire(name) is None}
        return GroundTruth(
            self.task,
            raw_batch,
            used_batch,
            clean,
            sent,
            private=private,
            masks={use: torch.cat([masks[use] for masks in all_masks]) for use in all_masks[0]},
            statistics=self.task.outward(self._average(batches)),
        )

    def close(self) -> Message | None:
        """Reveal what the defence reveals at the end, after the last round."""
        tensors = self.reveals()
        return Message(Kind.REVEAL, self.name, "server", self.local.round + 1, tensors) if tensors else None

    def reveals(self) -> Tensors:
        """Return what the defence reveals at the end, by name."""
        return self.defence.on_close(self._own())

    def batches(self, round: int) -> list[Batch]:
        """Return the batches of a round, as the schedule has them, or drawn."""
        return [batch for batch, _ in self._draw_batches(round)]

    @property
    def _size(self) -> int:
        return min(self.batch_size, len(self.data))

    def _draw_batches(self, round: int) -> Iterator[tuple[Batch, Sampling]]:
        """Yield the batches of a round, and what may be relied on about how each was chosen."""
        sampling: Sampling
        for step in range(round * self.local_steps, (round + 1) * self.local_steps):
            if self.batching == "poisson":
                positions = draw_poisson(len(self.data), self._size, self.local)
                sampling = Poisson(self._size / len(self.data), self._size)
            else:
                positions = self.schedule.positions(self.data, round, step, self._size, self.local.seed, self.name)
                sampling = KnownBatch(positions, attacked=self.batching == "attacked")
            yield self.data.take(positions.to(self.data.labels.device)), sampling

    def _prepare(self, raw: Batch, step: int) -> tuple[Batch, dict[str, Tensor]]:
        """Return what a step trains on, and the party's own draw of what dropout leaves of it."""
        self.local.now.batch = raw
        # Nobody is in an empty batch, so that there is nothing to change.
        used = self.local.now.batch = self.defence.on_batch(raw, self._own()) if len(raw) else raw
        require_each_once(self.defence, raw, used)
        return used, draw_masks(self.task, len(used), self.local, step)

    def _step(self, leaves: dict[str, Tensor], gradients: Gradient, steps: torch.optim.Optimizer) -> dict[str, Tensor]:
        """Take one local step in place; a shared gradient moves private parameters only, the server moves the rest."""
        tensors = dict(self.defence.on_gradient(gradients, self._own()).mean().tensors)
        for name, leaf in leaves.items():
            moves = self.shares is Kind.UPDATE or self.task.wire(name) is None
            leaf.grad = tensors[name].detach() if moves else None
        steps.step()
        return tensors

    def _average(self, batches: Sequence[Tensors]) -> dict[str, Tensor]:
        """Return the mean of batch statistics over steps, each by its weight in the running statistics."""
        norms, means = self.task.model.batch_norms(), dict[str, Tensor]()
        for name in batches[0]:
            weights = batches[0][name].new_tensor(norms[layer_of(name)].weights(len(batches)))
            if weights.sum() > 0:
                each = torch.stack([batch[name] for batch in batches])
                means[name] = torch.tensordot(weights / weights.sum(), each, dims=1)
        return means

    def _facts(self, used: Batch, round: int) -> dict[str, float]:
        # The real size of a sampled batch would tell who is in it.
        examples = self.local_steps * self._size if self.batching == "poisson" else len(used)
        facts = {"examples": float(examples), "owned": float(len(self.data))}
        if self.shares is Kind.UPDATE:
            facts |= {
                "local_steps": float(self.local_steps),
                "batch_size": float(examples // self.local_steps),
                **self.optimiser.at(round).facts(),
            }
            if self.keep_moments and (facts.get("momentum") or facts.get("adaptive")):
                facts["kept_moments"] = 1.0
        return facts

    def _own(self) -> Local:
        return self.local.scope("defence")


def draw_poisson(count: int, size: int, local: Local) -> Tensor:
    """Return the positions of the examples that are in a batch.

    Each is in it with probability `size` / `count`, independently of the others.

    Args:
        count: how many examples the party owns.
        size: the expected size of the batch, at most `count`. The batch may be larger, or empty.
        local: the party's own; its draws are secret as far as its random stream is.

    Example:
        >>> local = Local("client-0", seed=0)
        >>> draw_poisson(4, 4, local).tolist(), len({len(draw_poisson(100, 10, local)) for _ in range(20)}) > 1
        ([0, 1, 2, 3], True)
    """
    uniforms = local.scope("sampling").draws.uniforms((count,), torch.float64)
    return (uniforms < size / count).nonzero()[:, 0]


def draw_masks(task: Task, count: int, local: Local, step: int) -> dict[str, Tensor]:
    """Return what dropout multiplies by in one step, from the party's own stream; empty without dropout.

    Args:
        task: what the party trains on.
        count: how many examples are in the batch.
        local: the party's own.
        step: which of the message's local steps it is, from 0.

    Example:
        >>> from leaktight.core.task import Model
        >>> from leaktight.core.training_mode import Dropout
        >>> from leaktight.learning.task import classification
        >>> task = classification(Model(Dropout(torch.nn.Dropout(0.5)), torch.nn.Linear(4, 2)), (4,), 2)
        >>> [mask] = draw_masks(task, 3, Local("client-0", seed=0), 0).values()
        >>> mask.shape, sorted(mask.unique().tolist())
        (torch.Size([3, 4]), [0.0, 2.0])
    """
    uses = task.dropouts()
    if not uses:
        return {}
    draws, masks = local.named_draws("dropout", local.round, step), dict[str, Tensor]()
    for use, dropped in uses.items():
        uniforms = draws.uniforms((count, *dropped.shape), torch.float64)
        masks[use] = dropped.scale((uniforms >= dropped.rate).float()).to(task.device)
    return masks
