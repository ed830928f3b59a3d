"""Class keys: what a training step costs with them, and how long a whole GAN attack takes.

A step is compared with that of a plain softmax head on the same body. The body is that of the public experiments on
MNIST: two convolutions of 5x5 with 32 and 64 channels, each with leaky ReLU and max pooling, and a linear layer of 256
units, on batches of 128 images of 28x28. A step is forward, backward and an optimiser's step with momentum, as a
participant takes it, in a process that keeps freed memory, as the command line does. All heads are measured in turn;
the median of each counts, and ratios are of the times in the same turn.

The attack is that of `leaktight reproduce class-keys --scale small` on the plain framework: training with the attacker
in its seat, samples and all their scores. It needs MNIST in a folder: `--data path/to/data`, with a sub-folder `mnist`.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
from _rows import Row, parser, show
from torch import nn

from leaktight.core.allocator import keep_memory
from leaktight.core.defence import Defence, Undefended
from leaktight.core.local import Local
from leaktight.core.random import global_seed, stream
from leaktight.core.record import Status
from leaktight.core.task import Batch, Model, Task
from leaktight.defences import ClassKeys
from leaktight.learning import Sgd, classification
from leaktight.learning.gradient import gradient
from leaktight.papers import Order
from leaktight.papers.class_keys.audits import GUESSED, audit_name, plan_attacks_without_key
from leaktight.papers.class_keys.scales import MNIST, scope_of
from leaktight.papers.datasets import find_set
from leaktight.running.scheduler import run

BATCH, CLASSES, SHAPE = 128, 10, (1, 28, 28)
BAR, MINUTES = 1.3, 15.0
PLAIN = "plain"


def plain_task() -> Task:
    """Return the plain task with a softmax head."""
    with global_seed(0):
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
        rows.append(
            Row(f"{name}: against softmax", ratio, "x", BAR if "16384, fixed" in name else None, at_least=False)
        )
    return rows


def attack_rows(data: str, rounds: int | None) -> list[Row]:
    """Attack MNIST once, from the first round to the last score; nothing where the data are not there."""
    if not data or find_set(data, "mnist") is None:
        print("The GAN attack is left out: it needs MNIST. Name a folder that has a sub-folder `mnist` with `--data`.")
        return []
    plan = plan_attacks_without_key(scope_of(Order(scale="small", data=data, steps=rounds)))[
        audit_name(MNIST, GUESSED, 0)
    ]
    [cell] = [cell for cell in plan.cells() if cell.purpose == "measure" and isinstance(cell.defence, Undefended)]
    alone = plan.model_copy(update={"defences": ()})
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as place:
        records = run(alone, Path(place) / "audit", workers=2)
    spent = (time.perf_counter() - start) / 60
    [found] = [record for record in records if record.cell.key == cell.key]
    recognised = found.reading("recognised")
    if found.status is not Status.DONE or recognised is None:
        raise SystemExit(f"The attack came to nothing: {found.reason}")
    return [
        Row("GAN attack on MNIST with its null view and all scores", spent, "min", MINUTES, at_least=False),
        Row("samples recognised as the victim's class", recognised.value, ""),
    ]


def main() -> None:
    """Measure the steps, and the attack."""
    options = parser(__doc__)
    options.add_argument("--repeats", type=int, default=30, help="training steps to measure")
    options.add_argument("--data", default="", help="folder with a sub-folder `mnist`; without it there is no attack")
    options.add_argument("--rounds", type=int, help="cut the attack to so many rounds, to see that it runs")
    chosen = options.parse_args()
    keep_memory()
    rows = [Row("threads", torch.get_num_threads(), "")]
    rows += step_rows(chosen.repeats)
    rows += attack_rows(chosen.data, chosen.rounds)
    show(rows, chosen.json)


if __name__ == "__main__":
    main()
