"""Class keys: what a training step costs with them, against a plain softmax head on the same body.

The body is that of the public experiments on MNIST: two convolutions of 5x5 with 32 and 64 channels, each with leaky ReLU and max pooling, and a
linear layer of 256 units, on batches of 128 images of 28x28. A step is forward, backward and an optimiser's step with momentum, as a participant
takes it. All heads are measured in turn; the median of each counts, and ratios are of the times in the same turn.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import torch
from _rows import Row, parser, show
from torch import nn

from leaktight.core.defence import Defence, Undefended
from leaktight.core.local import Local
from leaktight.core.random import sealed, stream
from leaktight.core.task import Batch, Model, Task
from leaktight.defences import ClassKeys
from leaktight.learning import Sgd, classification
from leaktight.learning.gradient import gradient

BATCH, CLASSES, SHAPE = 128, 10, (1, 28, 28)
BAR = 1.3
PLAIN = "plain"


def plain_task() -> Task:
    """Return the plain task with a softmax head."""
    with sealed(0):
        body = nn.Sequential(
            *(nn.Conv2d(1, 32, 5), nn.LeakyReLU(0.2), nn.MaxPool2d(3)),
            *(nn.Conv2d(32, 64, 5), nn.LeakyReLU(0.2), nn.MaxPool2d(2)),
            *(nn.Flatten(), nn.Linear(256, 256), nn.LeakyReLU(0.2)),
        )
        return classification(Model(body, nn.Linear(256, CLASSES)), SHAPE, CLASSES)


def stepper(defence: Defence) -> Callable[[], None]:
    """Return what takes one training step under a defence, on the same images each time."""
    task = defence.on_task(defence.on_agree(plain_task()), Local("client-0", seed=0))
    rng = stream(0, "images")
    batch = Batch(torch.rand(BATCH, *SHAPE, generator=rng), torch.randint(0, CLASSES, (BATCH,), generator=rng))
    leaves = {name: tensor.clone().requires_grad_(True) for name, tensor in task.model.tensors().items()}
    steps = Sgd(learning_rate=0.01, momentum=0.9).over(leaves.values())

    def step() -> None:
        found = gradient(task, leaves, batch).tensors
        for name, leaf in leaves.items():
            leaf.grad = found[name]
        steps.step()

    return step


def step_rows(repeats: int) -> list[Row]:
    """Measure a plain step, and steps with keys against it."""
    heads: dict[str, Defence] = {PLAIN: Undefended()}
    heads |= {f"keys of {d}, fixed layer": ClassKeys(dimensions=d) for d in (1024, 4096, 16_384)}
    heads |= {f"keys of {d}, learned layer": ClassKeys(dimensions=d, fixed=False) for d in (1024, 4096)}
    steps = {name: stepper(defence) for name, defence in heads.items()}
    spent: dict[str, list[float]] = {name: [] for name in heads}
    # The first turns warm everything up.
    for number in range(repeats + 2):
        for name, step in steps.items():
            start = time.perf_counter()
            step()
            if number > 1:
                spent[name].append(1000 * (time.perf_counter() - start))
    rows = [Row(f"training step, softmax head, batch of {BATCH}", statistics.median(spent[PLAIN]), "ms")]
    for name in list(heads)[1:]:
        ratio = statistics.median(one / plain for one, plain in zip(spent[name], spent[PLAIN], strict=True))
        rows.append(Row(f"{name}: against softmax", ratio, "x", BAR if "16384, fixed" in name else None, at_least=False))
    return rows


def main() -> None:
    """Measure the steps."""
    options = parser(__doc__)
    options.add_argument("--repeats", type=int, default=30, help="training steps to measure")
    chosen = options.parse_args()
    rows = [Row("threads", torch.get_num_threads(), "")]
    rows += step_rows(chosen.repeats)
    show(rows, chosen.json)


if __name__ == "__main__":
    main()
