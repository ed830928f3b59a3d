"""The matching engine: find examples whose gradient matches the observed one, for many victims at once.

One row is one candidate of one victim. The objective of a row is written for one victim, mapped over rows, differentiated, and
traced once into a flat graph of tensor operations, which runs without the cost of the transformations. Rows that have come to
rest leave the batch; a row that meets a NaN ends alone.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

import torch
from torch import Tensor, nn
from torch._guards import TracingContext, tracing
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

from leaktight.attacks.descent import Descent
from leaktight.attacks.distance import Distance
from leaktight.attacks.initial import InitialName, initial
from leaktight.attacks.layout import Layout
from leaktight.attacks.prior import total_variation
from leaktight.attacks.replay import Replay
from leaktight.core.message import Tensors
from leaktight.core.random import Stream
from leaktight.core.task import Normalise

Evaluate = Callable[[Tensor, Tensors, Tensors, Tensor], tuple[Tensor, Tensor]]
Watch = Callable[[int, Tensor, Tensor], None]
"""Is told before each step how many there were, the victim of each row that still moves, and the rows' points."""

# How many bytes a chunk of rows may take, and after how many evaluations resting rows are dropped.
MEMORY = 1 << 30
DROP_EVERY = 50

PIXELS, LOGITS = "pixels", "logits"


@dataclasses.dataclass(frozen=True)
class Search:
    """How to search.

    Args:
        distance: between the candidate's and the observed tensors.
        entries: match all entries of a message, or those that were `sent`: not zero.
        descent: how candidates move.
        evaluations: how many gradients of the objective a row may use.
        start: where candidates start.
        restarts: candidates per victim; the one with the lowest objective is kept.
        tv: weight of total variation.
        tv_colours: whether total variation looks across colours too.
        sign: use the sign of the objective's gradient, of every unknown: not, hard, or softening over the search.
        box: keep pixels in [0, 1].
        decay: the schedule of the learning rate.
        stop: the objective at which a row rests.
    """

    distance: Distance
    entries: Literal["all", "sent"]
    descent: Descent
    evaluations: int
    start: InitialName
    restarts: int
    tv: float
    tv_colours: bool
    sign: Literal["none", "hard", "soft"]
    box: bool
    decay: Literal["none", "steps", "cosine"]
    stop: float

    def rate(self, evaluation: int) -> float:
        """Return what the learning rate is multiplied with."""
        share = evaluation / self.evaluations
        if self.decay == "steps":
            return float(0.1 ** sum(share >= eighths / 8 for eighths in (3, 5, 7)))
        if self.decay == "cosine":
            warm = min(1.0, (evaluation + 1) / 50)
            return warm * (1 + math.cos(math.pi * share)) / 2
        return 1.0

    def bent(self, gradients: Tensor, evaluation: int) -> Tensor:
        """Return the gradient that candidates follow."""
        if self.sign == "hard":
            return gradients.sign()
        if self.sign == "soft":
            scale = 1 - evaluation / self.evaluations
            return (gradients * scale).tanh() / scale
        return gradients


@dataclasses.dataclass(frozen=True)
class Victims:
    """Messages of one form, stacked along the first dimension.

    Args:
        replay: how the attacker models the senders.
        parameters: what they were sent; stacked, or one for all if `same` is set.
        same: whether all were sent the same parameters.
        wanted: what they sent, stacked.
        targets: known label probabilities (victims, examples, classes); None if they are searched for too.
        secrets: where to start the search for what the senders keep to themselves, (victims * restarts, ...) by name; empty if
            the attacker models no secret.
        starts: where to start the search for examples, (victims * restarts, examples, ...) in natural units; None if they are drawn.
    """

    replay: Replay
    parameters: Tensors
    same: bool
    wanted: Tensors
    targets: Tensor | None
    secrets: Tensors = dataclasses.field(default_factory=dict)
    starts: Tensor | None = None

    def __len__(self) -> int:
        return len(next(iter(self.wanted.values())))


@dataclasses.dataclass(frozen=True)
class Found:
    """The best candidate of each victim by the attacker's own objective."""

    inputs: Tensor
    targets: Tensor
    objective: Tensor

    @classmethod
    def best(cls, several: Sequence[Found]) -> Found:
        """Return for each victim what the search with the lowest objective found."""
        objectives = torch.stack([found.objective for found in several])
        chosen, place = objectives.argmin(0), torch.arange(objectives.shape[1], device=objectives.device)
        inputs, targets = (torch.stack([getattr(f, name) for f in several]) for name in ("inputs", "targets"))
        return cls(inputs[chosen, place], targets[chosen, place], objectives[chosen, place])


class Engine:
    """Searches for the examples behind the messages of some victims.

    Args:
        victims: the messages.
        search: how to search.
        watch: who looks on; None for nobody.
    """

    def __init__(self, victims: Victims, search: Search, watch: Watch | None = None) -> None:
        self.victims, self.search, self.replay, self.watch = victims, search, victims.replay, watch
        self.shape, self.classes = self.replay.task.shape, self.replay.task.classes
        self.layout = self._layout()
        self.device = self.replay.task.device
        self.spread = {name: _spread(tensor) for name, tensor in self.victims.secrets.items()}
        self.shift, self.scale = _units(self.replay.task.model.normalise, self.shape, self.device)
        self._graphs: dict[int, Evaluate] = {}

    def run(self, rng: Stream) -> Found:
        """Search all victims and restarts, as many rows at a time as fit into memory."""
        return self.run_from(self._start(len(self.victims) * self.search.restarts, rng))

    def run_from(self, points: Tensor) -> Found:
        """Search from these points, `restarts` consecutive ones for each victim."""
        rows, points = len(points), points.to(self.device)
        owners = torch.arange(len(self.victims), device=self.device).repeat_interleave(self.search.restarts)
        parts = [self._descend(points[chunk], owners[chunk]) for chunk in self._chunks(rows)]
        best, values = torch.cat([part[0] for part in parts]), torch.cat([part[1] for part in parts])
        values = values.view(-1, self.search.restarts)
        chosen = values.argmin(1)
        picked = best.view(len(self.victims), self.search.restarts, -1)[torch.arange(len(self.victims)), chosen]
        inputs, targets, _ = self._unpack(picked, self.victims.targets)
        return Found(inputs, targets, values.gather(1, chosen[:, None])[:, 0])

    def messages(self, points: Tensor, owners: Tensor) -> dict[str, Tensor]:
        """Return what the senders would have sent at these points, one row for each; `owners` are the rows' victims."""
        _, parameters, targets = self._arguments(owners)
        with torch.no_grad():
            mapped = torch.func.vmap(self._message, in_dims=(0, None if self.victims.same else 0, 0))
            found: dict[str, Tensor] = mapped(points, parameters, targets)[0]
        return found

    def _layout(self) -> Layout:
        """Return the unknowns of a row: pixels, label logits if labels are searched for, and the sender's secrets."""
        logits = {LOGITS: (self.replay.examples, self.classes)} if self.victims.targets is None else {}
        secrets = {name: tuple(tensor.shape[1:]) for name, tensor in self.victims.secrets.items()}
        return Layout({PIXELS: (self.replay.examples, *self.shape), **logits, **secrets})

    def _start(self, rows: int, rng: Stream) -> Tensor:
        if self.victims.starts is None:
            pixels = initial(self.search.start, rows * self.replay.examples, self.shape, rng)
        else:
            pixels = ((self.victims.starts.to(self.device) - self.shift) / self.scale).cpu()
        unknowns = {PIXELS: pixels}
        if self.victims.targets is None:
            unknowns[LOGITS] = torch.randn(rows, self.replay.examples * self.classes, generator=rng)
        secrets = {name: tensor.cpu() / self.spread[name] for name, tensor in self.victims.secrets.items()}
        return self.layout.pack({**unknowns, **secrets})

    def _unpack(self, points: Tensor, targets: Tensor | None) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
        """Return the pixels, label probabilities and secrets that points stand for; any leading dimensions."""
        unknowns = self.layout.unpack(points)
        inputs = unknowns.pop(PIXELS) * self.scale + self.shift
        if targets is None:
            targets = unknowns.pop(LOGITS).softmax(-1)
        return inputs, targets, {name: tensor * self.spread[name] for name, tensor in unknowns.items()}

    def _message(self, point: Tensor, parameters: Tensors, targets: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        """Return the message of one row, and its pixels."""
        inputs, targets, secrets = self._unpack(point, None if self.victims.targets is None else targets)
        return self.replay(parameters, inputs, targets, secrets), inputs

    def _objective(self, point: Tensor, wanted: Tensors, parameters: Tensors, targets: Tensor) -> Tensor:
        """Return the objective of one row."""
        found, inputs = self._message(point, parameters, targets)
        if self.search.entries == "sent":
            found = {name: torch.where(wanted[name] != 0, tensor, 0.0) for name, tensor in found.items()}
        value = self.search.distance(found, wanted)
        if self.search.tv:
            seen = (inputs - self.shift) / self.scale
            value = value + self.search.tv * total_variation(seen, colours=self.search.tv_colours)
        return value

    def _arguments(self, owners: Tensor) -> tuple[Tensors, Tensors, Tensor]:
        wanted = {name: tensor[owners] for name, tensor in self.victims.wanted.items()}
        parameters = self.victims.parameters
        if not self.victims.same:
            parameters = {name: tensor[owners] for name, tensor in parameters.items()}
        known = self.victims.targets
        return wanted, parameters, torch.zeros(len(owners), device=self.device) if known is None else known[owners]

    def _evaluate(self, points: Tensor, arguments: tuple[Tensors, Tensors, Tensor]) -> Evaluate:
        """Return what evaluates this many rows; it is traced once."""
        if len(points) not in self._graphs:
            self._graphs[len(points)] = self._traced(points, arguments)
        return self._graphs[len(points)]

    def _traced(self, points: Tensor, arguments: tuple[Tensors, Tensors, Tensor]) -> Evaluate:
        """Return (values, gradients) of all rows as one flat graph for exactly these shapes."""
        both = torch.func.grad_and_value(self._objective)
        mapped = torch.func.vmap(both, in_dims=(0, 0, None if self.victims.same else 0, 0))

        def plain(points: Tensor, wanted: Tensors, parameters: Tensors, targets: Tensor) -> tuple[Tensor, Tensor]:
            gradients, values = mapped(points, wanted, parameters, targets)
            return values, gradients

        # One mode for the shapes of all results: else tracing makes a new one for each, with a record of the whole call stack.
        with tracing(TracingContext(FakeTensorMode())):
            graph = make_fx(plain)(points, *arguments)
        graph.graph.eliminate_dead_code()
        graph.recompile()

        def evaluate(points: Tensor, wanted: Tensors, parameters: Tensors, targets: Tensor) -> tuple[Tensor, Tensor]:
            with torch.no_grad():
                found: tuple[Tensor, Tensor] = graph(points, wanted, parameters, targets)
            return found

        return evaluate

    def _descend(self, points: Tensor, owners: Tensor) -> tuple[Tensor, Tensor]:
        """Search from these points; return each row's best point and its objective."""
        found, lowest = torch.empty_like(points), points.new_full((len(points),), math.inf)
        rows = torch.arange(len(points), device=self.device)
        best, value = points, lowest.clone()
        done = torch.zeros(len(points), dtype=torch.bool, device=self.device)
        arguments = self._arguments(owners)
        evaluate = self._evaluate(points, arguments)
        walk = self.search.descent.walk(points)
        for evaluation in range(self.search.evaluations + 1):
            if self.watch is not None:
                self.watch(evaluation, owners, points)
            values, gradients = evaluate(points, *arguments)
            healthy = values.isfinite() & gradients.sum(1).isfinite()
            better = healthy & (values < value)
            best, value = torch.where(better[:, None], points, best), torch.where(better, values, value)
            done |= ~healthy | (values <= self.search.stop)
            if evaluation == self.search.evaluations or bool(done.all()):
                break
            gradients = self.search.bent(gradients.masked_fill(~healthy[:, None], 0.0), evaluation)
            moved, resting = walk.step(points, gradients, self.search.rate(evaluation))
            points = torch.where(done[:, None], points, self._boxed(moved))
            done |= resting
            if evaluation % DROP_EVERY == DROP_EVERY - 1 and 2 * int(done.sum()) >= len(done):
                found[rows], lowest[rows] = best, value
                left = (~done).nonzero()[:, 0]
                rows, points, owners, best, value, done = (kept[left] for kept in (rows, points, owners, best, value, done))
                if len(left) == 0:
                    break
                walk.keep(left)
                arguments = self._arguments(owners)
                evaluate = self._evaluate(points, arguments)
        found[rows], lowest[rows] = best, value
        return found, lowest

    def _boxed(self, points: Tensor) -> Tensor:
        if not self.search.box:
            return points
        unknowns = self.layout.unpack(points)
        unknowns[PIXELS] = unknowns[PIXELS].clamp(-self.shift / self.scale, (1 - self.shift) / self.scale)
        return self.layout.pack(unknowns)

    def _chunks(self, rows: int) -> Iterator[slice]:
        size = max(1, MEMORY // self._bytes_per_row())
        pieces = -(-rows // size)
        size = -(-rows // pieces)  # even pieces: one traced graph then fits nearly all of them
        return (slice(start, start + size) for start in range(0, rows, size))

    def _bytes_per_row(self) -> int:
        """Estimate what one row needs: a dozen copies of the gradients and activations, and what the descent remembers."""
        model = self.replay.task.model
        parameters = sum(parameter.numel() for parameter in model.parameters())
        examples = self.replay.examples * max(1, len(self.replay.changes))
        activations = _activations(model, self.shape, self.device) * examples
        remembered = self.search.descent.remembered * self.layout.width
        return 4 * (12 * self.replay.local_steps * (parameters + activations) + remembered)


def _spread(draws: Tensor) -> float:
    """Return the standard deviation of a secret's draws: a search in such units moves small secrets and large ones alike."""
    return draws.double().std(correction=0).item() or 1.0


def _units(normalise: nn.Module, shape: tuple[int, ...], device: torch.device) -> tuple[Tensor, Tensor]:
    """Return shift and scale from the units that the network sees to natural ones: searches run in the former."""
    if not isinstance(normalise, Normalise):
        return torch.zeros(1, device=device), torch.ones(1, device=device)
    shift, scale = normalise.units(len(shape))
    return shift.to(device), scale.to(device)


def _activations(model: nn.Module, shape: tuple[int, ...], device: torch.device) -> int:
    """Count the numbers that a forward pass over one example makes."""
    total = 0

    def count(module: nn.Module, inputs: object, output: object) -> None:
        nonlocal total
        total += output.numel() if isinstance(output, Tensor) else 0

    hooks = [module.register_forward_hook(count) for module in model.modules() if not list(module.children())]
    with torch.no_grad():
        model(torch.zeros(1, *shape, device=device))
    for hook in hooks:
        hook.remove()
    return total
