"""Rows of the layers benchmark: the sensitivity of every layer of VGG11Net for one example.

The comparison is with `torch.autograd.functional.jacobian`.

Time: that function's reverse mode goes backward once for each entry of a gradient. Layers of at most 500 entries are
done whole; of every other layer 40 rows from the middle of its weights are done, and the time for one of them counts
times the entries of the layer. Forward mode does all layers whole. Values are compared on the layers that both do
whole.

Memory: the peak of a process that does the work, less that of the same process before it, which has done both on a tiny
network. Reverse mode does 8,000 rows of one layer there, where all layers have 683,570, and keeps what it needs for
them: a lower end of what it would take. Beside it stand the rows of the whole Jacobian, each a tensor of two numbers as
it keeps them, and nothing else; and the numbers alone, without the tensors around them, which are less than either
takes. Forward mode does all layers.
"""

from __future__ import annotations

import dataclasses
import multiprocessing
import re
import resource
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
import torch.nn.functional as F
from _rows import Row
from torch import Tensor

from leaktight.core.random import stream
from leaktight.core.task import Batch, Task
from leaktight.learning import classification
from leaktight.learning.bounded_norm import bounded_norms, spans, totals
from leaktight.learning.target_jacobian import target_norms
from leaktight.models import MLP, Network, VGG11Net

SHAPE, CLASSES = (3, 62, 47), 2
WHOLE = 500
"""Layers of at most so many entries are done whole by reverse mode."""

BLOCK = 40
"""Rows that it does of every other layer."""

KEPT = 8000
"""Rows that it does in a process of its own, to see what they take."""


@dataclasses.dataclass(frozen=True)
class Problem:
    """One example, and the network whose gradient is differentiated."""

    task: Task
    batch: Batch

    @staticmethod
    def of(network: Network, shape: tuple[int, ...]) -> Problem:
        """Return a network with random weights and one random example."""
        task = classification(network.build(shape, CLASSES, seed=0), shape, CLASSES)
        return Problem(task, Batch(torch.rand(1, *shape, generator=stream(0, "image")), torch.tensor([1])))

    def reverse(self, layer: str) -> tuple[Tensor, Tensor]:
        """Return a layer's gradient and its whole Jacobian by reverse mode, flat."""
        gradient, target = self._gradient(layer)
        rows = torch.autograd.functional.jacobian(gradient, target)  # type: ignore[no-untyped-call]
        flat = torch.cat([each.flatten() for each in rows])
        return torch.cat([each.detach().flatten() for each in gradient(target.requires_grad_())]), flat

    def block(self, layer: str, count: int) -> object:
        """Return so many rows from the middle of the Jacobian of a layer's weights, by reverse mode."""
        gradient, target = self._gradient(layer)

        def some(at: Tensor) -> Tensor:
            weights = gradient(at)[0].flatten()
            middle = (len(weights) - count) // 2
            return weights[middle : middle + count]

        found: object = torch.autograd.functional.jacobian(some, target)  # type: ignore[no-untyped-call]
        return found

    def _gradient(self, layer: str) -> tuple[Callable[[Tensor], tuple[Tensor, ...]], Tensor]:
        leaves = {name: tensor.clone().requires_grad_() for name, tensor in self.task.model.tensors().items()}
        own = [leaves[name] for name in self.task.layers()[layer]]

        def gradient(target: Tensor) -> tuple[Tensor, ...]:
            loss = self.task.loss(self.task.forward(leaves, self.batch.inputs), target[None]).sum()
            return torch.autograd.grad(loss, own, create_graph=True)

        return gradient, F.one_hot(self.batch.labels[0], CLASSES).float()

    def forward(self) -> dict[str, Tensor]:
        """Return the norms of all layers by forward mode."""
        return target_norms(self.task, self.task.model.tensors(), self.batch)

    def entries(self) -> dict[str, int]:
        """Return how many entries the gradient of each layer has."""
        tensors = self.task.model.tensors()
        return {layer: sum(tensors[name].numel() for name in own) for layer, own in self.task.layers().items()}


def sensitivity_rows(repeats: int = 5) -> list[Row]:
    """Measure time and memory of both, and how far their values are apart on the layers that both do whole."""
    memory = _memory_rows()
    problem = Problem.of(VGG11Net(), SHAPE)
    _warm()
    ours = statistics.median(_seconds(problem.forward) for _ in range(repeats + 1))
    norms = problem.forward()
    rows, theirs, apart, whole = [], 0.0, 0.0, []
    for layer, entries in problem.entries().items():
        if entries <= WHOLE:
            start = time.perf_counter()
            gradient, jacobian = problem.reverse(layer)
            seconds = time.perf_counter() - start
            expected = bounded_norms(totals([jacobian.reshape(1, -1)]), spans([gradient[None]]), entries)
            apart = max(apart, ((norms[layer] - expected) / expected).abs().max().item())
            whole.append(layer)
        else:
            seconds = _row_seconds(problem, layer) * entries
        theirs += seconds
        how = "whole" if layer in whole else f"time of {BLOCK} rows, for {entries}"
        rows.append(Row(f"reverse mode, {layer}: {how}", seconds, "s"))
    rows += [
        Row("reverse mode, all layers: sum of these", theirs, "s"),
        Row("forward mode, all layers whole", ours, "s"),
        Row("forward mode is faster by", theirs / ours, "x", 10),
        Row(f"largest relative difference of norms in {', '.join(whole)}", apart, "", 1e-4, at_least=False),
    ]
    return rows + memory


def _row_seconds(problem: Problem, layer: str) -> float:
    """Return how long reverse mode takes for one more row in the middle of a layer."""
    short, long = (_seconds(partial(problem.block, layer, count)) for count in (1, 1 + BLOCK))
    return (long - short) / BLOCK


def _memory_rows() -> list[Row]:
    """Measure what each takes, in processes of their own."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1, maxtasksperchild=1) as pool:
        forward, reverse, tensors = (pool.apply(_grown, (work,)) for work in (_all_layers, _some_rows, _tensors))
    total = sum(Problem.of(VGG11Net(), SHAPE).entries().values())
    numbers = 4 * CLASSES * total
    return [
        Row("forward mode, all layers: memory", forward / 2**20, "MiB"),
        Row(f"reverse mode, {KEPT} rows of body.linear2: memory", reverse / 2**20, "MiB"),
        Row("forward mode takes of that", forward / reverse, "", 0.1, at_least=False),
        Row(f"{total} rows as tensors of {CLASSES} numbers: memory", tensors / 2**20, "MiB"),
        Row("forward mode takes of that", forward / tensors, "", 0.1, at_least=False),
        Row("the numbers in them alone", numbers / 2**20, "MiB"),
    ]


def _grown(work: Callable[[Problem], object]) -> float:
    """Return by how many bytes some work raises the peak of this process."""
    torch.set_num_threads(1)
    problem = Problem.of(VGG11Net(), SHAPE)
    _warm()
    before = _peak()
    kept = work(problem)
    after = _peak()
    del kept
    return after - before


def _all_layers(problem: Problem) -> object:
    return problem.forward()


def _some_rows(problem: Problem) -> object:
    return problem.block("body.linear2", KEPT)


def _tensors(problem: Problem) -> object:
    return [torch.zeros(CLASSES) for _ in range(sum(problem.entries().values()))]


def _warm() -> None:
    """Load what either needs, on a tiny network."""
    tiny = Problem.of(MLP(hidden=(4,)), (2,))
    tiny.forward()
    tiny.reverse("head")


def _peak() -> float:
    """Return the most memory that this process has had, in bytes."""
    status = Path("/proc/self/status")
    found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text()) if status.exists() else None
    if found:
        return 1024 * float(found[1])
    # Elsewhere the figure may be that of the parent, if it had more.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
