"""The search engine: minimise an objective over many rows at once.

One row is one candidate of one victim. The objective is written for one row, mapped over rows, differentiated, and
traced once into a flat graph of tensor operations, which runs without the cost of the transformations. Rows that have
come to rest leave the batch; a row that meets a NaN ends alone. The engine knows nothing of gradients and messages:
those are in the objective.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

import torch
from torch import Tensor
from torch.fx import GraphModule

from leaktight.attacks.columns import AsColumns
from leaktight.attacks.optimiser import SearchOptimiser, choose
from leaktight.core.memory import SEARCH_MEMORY
from leaktight.core.torch_private import trace_graph

Named = Mapping[str, Any]
"""Tensors by name, or nested mappings of them."""
Evaluate = Callable[..., tuple[Tensor, Tensor]]
Watch = Callable[[int, Tensor, Tensor], None]
"""Called before each step with the number of steps so far, the victim of each moving row, and the rows' points."""

# How many bytes a chunk of rows may take, and after how many evaluations resting rows are dropped.
MEMORY = SEARCH_MEMORY
DROP_EVERY = 50
# Over how many evaluations an objective is watched for having settled.
SETTLE_OVER = 10


@dataclasses.dataclass(frozen=True)
class Problem:
    """What is minimised.

    Args:
        objective: (point, shared, own, row, weight) to the objective of one row; `weight` multiplies what the messages
            say.
        shared: what is the same for all rows.
        own: what each victim has of its own, stacked.
        rows: what each row has of its own, stacked: the hypothesis that it tries. Rows of a victim follow each other.
        group: (points, owners) to what the rows of a victim say about each other, one number for each row; None if
            nothing.
        project: brings points back to where they may be.
        revise: (points, owners, rows) to what the rows assume after a phase, given what they assumed before and where
            they are.
        bytes_per_row: how much memory an evaluation of a row takes, about.
    """

    objective: Callable[[Tensor, Named, Named, Named, Tensor], Tensor]
    shared: Named
    own: Named
    rows: Named = dataclasses.field(default_factory=dict)
    group: Callable[[Tensor, Tensor], Tensor] | None = None
    project: Callable[[Tensor], Tensor] | None = None
    revise: Callable[[Tensor, Tensor, Named], Named] | None = None
    bytes_per_row: int = 1 << 20


@dataclasses.dataclass(frozen=True)
class Phase:
    """A stretch of a search.

    Args:
        evaluations: how many gradients of the objective a row may use.
        weight: what multiplies the messages' part of the objective: below 1 their law is taken wider than it is.
        keep: how many rows of each victim reach the next phase, those with the lowest objective.
    """

    evaluations: int
    weight: float = 1.0
    keep: int = 1


@dataclasses.dataclass(frozen=True)
class SearchSettings:
    """How to search.

    Args:
        descent: how candidates move.
        phases: the stretches of the search, in order.
        sign: use the sign of the objective's gradient, of every unknown: not, hard, or softening over the search.
        decay: the schedule of the learning rate.
        stop: the objective at which a row rests.
        settle: a row rests when ten evaluations lowered its objective by less than this; 0 for never.
    """

    descent: SearchOptimiser
    phases: tuple[Phase, ...]
    sign: Literal["none", "hard", "soft"] = "none"
    decay: Literal["none", "steps", "cosine"] = "none"
    stop: float = -math.inf
    settle: float = 0.0

    @property
    def evaluations(self) -> int:
        """How many gradients of the objective a row may use in all."""
        return sum(phase.evaluations for phase in self.phases)

    def rate(self, share: float, evaluation: int) -> float:
        """Return what the learning rate is multiplied with."""
        if self.decay == "steps":
            return float(0.1 ** sum(share >= eighths / 8 for eighths in (3, 5, 7)))
        if self.decay == "cosine":
            warm = min(1.0, (evaluation + 1) / 50)
            return warm * (1 + math.cos(math.pi * share)) / 2
        return 1.0

    def bend(self, gradients: Tensor, share: float) -> Tensor:
        """Return the gradient that candidates follow."""
        if self.sign == "hard":
            return gradients.sign()
        if self.sign == "soft":
            return (gradients * (1 - share)).tanh() / (1 - share)
        return gradients


@dataclasses.dataclass(frozen=True)
class SearchResult:
    """The best rows of each victim: their numbers among all rows, their points, and their objective."""

    rows: Tensor
    points: Tensor
    objective: Tensor


class SearchEngine:
    """Minimises the objective of some victims.

    Args:
        problem: what is minimised.
        search: how.
        watch: called before each step; None for nothing.
    """

    def __init__(self, problem: Problem, search: SearchSettings, watch: Watch | None = None) -> None:
        self.problem, self.search, self.watch = problem, search, watch
        self.tried = problem.rows
        self._graphs: dict[int, Evaluate] = {}

    def run(self, points: Tensor, victims: int) -> SearchResult:
        """Search from these points, as many consecutive ones for each victim, and return the best row of each.

        All rows are searched at once, as far as they fit into memory.
        """
        result = self.race(points, victims)
        best = _best(result.objective, victims, 1)
        return SearchResult(result.rows[best], result.points[best], result.objective[best])

    def race(self, points: Tensor, victims: int) -> SearchResult:
        """Search from these points, and return all rows that the last phase keeps."""
        rows = torch.arange(len(points), device=points.device)
        owners = rows // (len(points) // victims)
        values = points.new_full((len(points),), math.inf)
        before, last = 0, len(self.search.phases) - 1
        self.tried = self.problem.rows
        for number, phase in enumerate(self.search.phases):
            points, values = self._phase(phase, before, points, owners, rows)
            before += phase.evaluations
            if self.problem.revise is not None and number < last:
                self._revise(points, owners, rows)
                values = self.values(points, owners, rows)
            best = _best(values, victims, phase.keep)
            points, values, owners, rows = points[best], values[best], owners[best], rows[best]
        return SearchResult(rows, points, values)

    def _revise(self, points: Tensor, owners: Tensor, rows: Tensor) -> None:
        """Let the rows assume something else."""
        if self.problem.revise is not None:
            revised = self.problem.revise(points, owners, _take(self.tried, rows))
            self.tried = {name: each.index_copy(0, rows, revised[name]) for name, each in self.tried.items()}

    def values(self, points: Tensor, owners: Tensor, rows: Tensor) -> Tensor:
        """Return the objective at these points; a row's hypothesis is that of its number in `rows`."""
        parts = []
        for chunk in self._chunks(points, owners):
            arguments = self._arguments(owners[chunk], rows[chunk], 1.0)
            parts.append(self._evaluate(points[chunk], arguments)(points[chunk], *arguments)[0])
        return torch.cat(parts)

    def _phase(self, phase: Phase, before: int, points: Tensor, owners: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
        parts = [
            self._descend(phase, before, points[chunk], owners[chunk], rows[chunk])
            for chunk in self._chunks(points, owners)
        ]
        return torch.cat([part[0] for part in parts]), torch.cat([part[1] for part in parts])

    def _arguments(self, owners: Tensor, rows: Tensor, weight: float) -> tuple[Any, ...]:
        own, row = _take(self.problem.own, owners), _take(self.tried, rows)
        return self.problem.shared, own, row, torch.tensor(weight, device=owners.device), owners

    def _evaluate(self, points: Tensor, arguments: tuple[Any, ...]) -> Evaluate:
        """Return what evaluates this many rows; it is traced once."""
        if len(points) not in self._graphs:
            self._graphs[len(points)] = self._trace(points, arguments)
        return self._graphs[len(points)]

    def _trace(self, points: Tensor, arguments: tuple[Any, ...]) -> Evaluate:
        """Return (values, gradients) of all rows as one flat graph for exactly these shapes."""
        both = torch.func.grad_and_value(self.problem.objective)
        mapped = torch.func.vmap(both, in_dims=(0, None, 0, 0, None))

        def plain(
            points: Tensor, shared: Named, own: Named, row: Named, weight: Tensor, owners: Tensor
        ) -> tuple[Tensor, Tensor]:
            gradients, values = mapped(points, shared, own, row, weight)
            if self.problem.group is not None:
                group = self.problem.group
                further, (each,) = torch.func.grad(
                    lambda p: (group(p, owners).sum(), (group(p, owners),)), has_aux=True
                )(points)
                gradients, values = gradients + further, values + each
            return values, gradients

        with AsColumns():
            graph = trace_graph(plain, points, *arguments)
        _drop_first_powers(graph)
        graph.graph.eliminate_dead_code()
        graph.recompile()

        def evaluate(*inputs: Any) -> tuple[Tensor, Tensor]:
            with torch.no_grad():
                result: tuple[Tensor, Tensor] = graph(*inputs)
            return result

        return evaluate

    def _descend(
        self, phase: Phase, before: int, points: Tensor, owners: Tensor, rows: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Search from these points; return each row's best point and its objective."""
        lowest_points, lowest = points.clone(), points.new_full((len(points),), math.inf)
        places = torch.arange(len(points), device=points.device)
        best, value = points, lowest.clone()
        done = torch.zeros(len(points), dtype=torch.bool, device=points.device)
        arguments = self._arguments(owners, rows, phase.weight)
        evaluate = self._evaluate(points, arguments)
        state = self.search.descent.start(points)
        earlier = value
        for evaluation in range(phase.evaluations + 1):
            if self.watch is not None:
                self.watch(before + evaluation, owners, points)
            values, gradients = evaluate(points, *arguments)
            healthy = values.isfinite() & gradients.sum(1).isfinite()
            better = healthy & (values < value)
            best, value = choose(better, points, best), torch.where(better, values, value)
            done |= ~(healthy | state.recovers) | (values <= self.search.stop)
            if self.search.settle and evaluation % SETTLE_OVER == 0:
                settled = ~done & (earlier - value < self.search.settle)
                done |= settled & ~state.revive(settled, self.search.settle)
                earlier = value
            if evaluation == phase.evaluations or bool(done.all()):
                break
            share = (before + evaluation) / self.search.evaluations
            gradients = self.search.bend(gradients.masked_fill(~healthy[:, None], 0.0), share)
            values = values.masked_fill(~healthy, math.inf)
            moved, resting = state.step(points, values, gradients, self.search.rate(share, before + evaluation))
            points = choose(done, points, self._project(moved))
            done |= resting
            if evaluation % DROP_EVERY == DROP_EVERY - 1 and 2 * int(done.sum()) >= len(done):
                lowest_points[places], lowest[places] = best, value
                left = (~done).nonzero()[:, 0]
                if len(left) == 0:
                    break
                places, points, owners, rows, best, value, done, earlier = (
                    kept[left] for kept in (places, points, owners, rows, best, value, done, earlier)
                )
                state.keep(left)
                arguments = self._arguments(owners, rows, phase.weight)
                evaluate = self._evaluate(points, arguments)
        lowest_points[places], lowest[places] = best, value
        return lowest_points, lowest

    def _project(self, points: Tensor) -> Tensor:
        return points if self.problem.project is None else self.problem.project(points)

    def _chunks(self, points: Tensor, owners: Tensor) -> Iterator[slice]:
        """Return which rows are searched at once; those of a victim stay together where they see each other."""
        remembered = 4 * self.search.descent.vectors_per_row * points.shape[1]
        size = max(1, MEMORY // (self.problem.bytes_per_row + remembered))
        together = 1 if self.problem.group is None else int((owners == owners[0]).sum())
        units = len(points) // together
        pieces = -(-units // max(1, size // together))
        size = -(-units // pieces) * together  # even pieces: one traced graph then fits nearly all of them
        return (slice(start, start + size) for start in range(0, len(points), size))


def _drop_first_powers(graph: GraphModule) -> None:
    """Replace x to the power of 1, which the derivative of a square copies, by x: a twentieth of an evaluation."""
    for node in graph.graph.nodes:
        if node.target is torch.ops.aten.pow.Tensor_Scalar and node.args[1] == 1:
            node.replace_all_uses_with(node.args[0])


def _best(values: Tensor, victims: int, keep: int) -> Tensor:
    """Return the places of the rows of each victim with the lowest objective, in rising order."""
    table = values.view(victims, -1)
    chosen = table.argsort(dim=1, stable=True)[:, :keep].sort(1).values
    return (chosen + torch.arange(victims, device=values.device)[:, None] * table.shape[1]).flatten()


def _take(tensors: Named, index: Tensor) -> Named:
    return {name: each[index] if isinstance(each, Tensor) else _take(each, index) for name, each in tensors.items()}
