"""Layer-wise characterisation: what the attacker's own gradients cost.

Property inference learns from gradients of hundreds of batches that are drawn from one pool of public examples. They
are made together, each example passed through the network once, against one backward pass for each batch. Both end with
the same pooled features, on one thread, on random images of the size of the paper's faces. The two are measured in
turn, by processor time, and the median of each counts; batch by batch, only every tenth batch is measured, as all take
the same time.
"""

from __future__ import annotations

import statistics
import time

import torch
from _rows import Row, parser, show
from _sensitivity import sensitivity_rows
from torch import Tensor

from leaktight.attacks.auxiliary_gradients import batch_gradients
from leaktight.core.random import stream
from leaktight.core.task import Batch, Task
from leaktight.learning import classification, gradient
from leaktight.learning.gradient_features import pool_layers
from leaktight.models import FaceAlexNet, VGG11Net
from leaktight.models.network import Network

SHAPE, CLASSES = (3, 62, 47), 2
POOL, BATCHES, SIZE = 600, 400, 32
MEASURED = 10


def property_rows(repeats: int) -> list[Row]:
    """Measure the gradients that property inference learns from, made together and one by one."""
    networks: list[Network] = [FaceAlexNet(), VGG11Net()]
    return [row for network in networks for row in _gradient_rows(network, repeats)]


def _gradient_rows(network: Network, repeats: int) -> list[Row]:
    task = classification(network.build(SHAPE, CLASSES, seed=0), SHAPE, CLASSES)
    rng = stream(0, "pool")
    pool = Batch(torch.rand(POOL, *SHAPE, generator=rng), torch.randint(CLASSES, (POOL,), generator=rng))
    members = torch.stack([torch.randperm(POOL, generator=rng)[:SIZE] for _ in range(BATCHES)])
    # Warms everything up, and shows that both make the same.
    difference = _difference(together(task, pool, members[:40]), one_by_one(task, pool, members[:40:MEASURED]))
    fast, slow = [], []
    for _ in range(repeats):
        start = time.process_time()
        together(task, pool, members)
        between = time.process_time()
        one_by_one(task, pool, members[::MEASURED])
        fast.append((between - start) / len(members))
        slow.append((time.process_time() - between) / len(members[::MEASURED]))
    quick, plain = statistics.median(fast), statistics.median(slow)
    return [
        Row(f"{network.kind}: a gradient of {SIZE}, by itself", 1000 * plain, "ms"),
        Row(f"{network.kind}: the same, {BATCHES} from a pool of {POOL}", 1000 * quick, "ms"),
        Row(f"{network.kind}: together against one at a time", plain / quick, "x", 4.0),
        Row(f"{network.kind}: largest difference of a feature, relative", difference, "", 1e-4, at_least=False),
    ]


def together(task: Task, pool: Batch, members: Tensor) -> Tensor:
    """Return the features of every batch's gradient, made from records of each example."""
    return torch.cat([_features(found) for found in batch_gradients(task, task.model.tensors(), pool, members)])


def one_by_one(task: Task, pool: Batch, members: Tensor) -> Tensor:
    """Return the same from a backward pass for each batch."""
    parameters = task.model.tensors()
    found = (gradient(task, parameters, pool.take(row)).tensors for row in members)
    return torch.cat([_features({name: tensor[None] for name, tensor in each.items()}) for each in found])


def _features(tensors: dict[str, Tensor]) -> Tensor:
    return torch.cat(list(pool_layers(tensors).values()), dim=1)


def _difference(some: Tensor, few: Tensor) -> float:
    return ((some[::MEASURED] - few).abs().amax() / few.abs().amax()).item()


def main() -> None:
    """Measure on one thread."""
    options = parser(__doc__)
    options.add_argument("--repeats", type=int, default=3, help="how often to measure each")
    chosen = options.parse_args()
    torch.set_num_threads(1)
    rows = [Row("threads", torch.get_num_threads(), "")]
    rows += sensitivity_rows(chosen.repeats)
    rows += property_rows(chosen.repeats)
    show(rows, chosen.json)


if __name__ == "__main__":
    main()
