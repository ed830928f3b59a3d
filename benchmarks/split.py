"""Split learning: what label protection costs, and what two parties cost against one.

The step is that of the public experiments' deep part: 13 numbers and 26 embeddings of 4 go through six layers of 128
units, cut after the third, with a quarter of positives; forward and backward of both parts in one process. Protection
is the defence's `on_message` on that step's own cut gradient. Each step has new rows and parameters that the last one
changed, so that no search starts from its own answer. The two are measured in turn; the median of each counts, and the
95 % quantile is shown beside it. Idle threads of torch rest soon, as they do under the command line.
"""

# ruff: noqa: E402
from __future__ import annotations

import itertools
import random
import statistics
import time
from collections.abc import Callable, Iterator
from typing import ParamSpec

from leaktight.core.threads import rest_soon

rest_soon()  # torch reads it when it is imported

import torch
import torch.nn.functional as F
from _rows import Row, parser, show
from _training import training_rows
from torch import Tensor, nn

from leaktight.core.defence import Defence
from leaktight.core.local import Local
from leaktight.core.message import Kind, Message
from leaktight.core.random import global_seed, stream
from leaktight.core.secure import SecretKey
from leaktight.core.task import Batch
from leaktight.defences import IsotropicNoise, MaxNorm, SumKL
from leaktight.defences.divergence import Classes, allowed_sumkl, power
from leaktight.defences.sumkl_solver import least, strongest

P = ParamSpec("P")
BATCH, WIDTH = 65_536, 128
NUMBERS, WORDS, BUCKETS = 13, 26, 10_000
BARS = {"fast": 6.0, "secure": 12.0}
"""What sumKL may add to a step at most, in percent, by the stream that its noise comes from."""


def milliseconds(work: Callable[P, object], *given: P.args, **named: P.kwargs) -> float:
    """Return how long some work takes."""
    start = time.perf_counter()
    work(*given, **named)
    return 1000 * (time.perf_counter() - start)


def problems(count: int) -> Iterator[Classes]:
    """Make classes of every size, as the solver's tests do."""
    rng = random.Random(0)  # noqa: S311
    for _ in range(count):
        unit = 10 ** rng.uniform(-12, 4)
        u, v, g = (unit * 10 ** rng.uniform(-2, 2) for _ in range(3))
        yield Classes(u, v, g, round(10 ** rng.uniform(0, 3.6)), rng.uniform(0.001, 0.999))


def solver_rows() -> list[Row]:
    """Measure one solve for a power, and the search for the least power that meets a bound.

    The search is measured from scratch and from a good start.
    """
    fixed, searched, warm = [], [], []
    for classes in problems(300):
        fixed.append(milliseconds(strongest, classes, classes.gap))
        for bound in (0.1, 0.4):
            allowed = allowed_sumkl(bound)
            searched.append(milliseconds(least, classes, allowed))
            guess = 1.02 * power(classes, least(classes, allowed))
            warm.append(milliseconds(least, classes, allowed, guess))
    return [
        Row("solve for a given power, mean", statistics.mean(fixed), "ms", 1.0, at_least=False),
        Row("solve for the least power that meets a bound, mean", statistics.mean(searched), "ms", 1.0, at_least=False),
        Row("the same from the last batch's power, mean", statistics.mean(warm), "ms", 1.0, at_least=False),
    ]


class Step:
    """One training step of two parts in one process.

    The top model knows how rare positives are, as it soon does: their gradients spread wider, and most rows need noise
    in all directions.
    """

    def __init__(self) -> None:
        self.truth = torch.randn(NUMBERS, generator=stream(0, "truth")) / NUMBERS**0.5
        self.draw(0)
        with global_seed(0):
            self.embedding = nn.Embedding(BUCKETS * WORDS, 4)
            self.bottom, self.last = _layers(NUMBERS + 4 * WORDS, 3), nn.Linear(WIDTH, 1)
            self.top = nn.Sequential(_layers(WIDTH, 3), self.last)
        nn.init.constant_(self.last.bias, self.labels.float().mean().logit().item())

    def draw(self, number: int) -> None:
        """Take new rows."""
        rng = stream(0, "step", number)
        self.numbers = torch.randn(BATCH, NUMBERS, generator=rng)
        self.words = torch.randint(BUCKETS, (BATCH, WORDS), generator=rng) + BUCKETS * torch.arange(WORDS)
        self.labels = torch.bernoulli(torch.sigmoid(self.numbers @ self.truth - 1.2), generator=rng).long()

    def learn(self, rate: float = 0.1) -> None:
        """Follow the last gradients."""
        with torch.no_grad():
            for module in (self.embedding, self.bottom, self.top):
                for parameter in module.parameters():
                    if parameter.grad is not None:
                        parameter.sub_(parameter.grad, alpha=rate)

    def __call__(self) -> Tensor:
        """Run forward and backward, and return the gradient at the cut."""
        for module in (self.embedding, self.bottom, self.top):
            module.zero_grad()
        activations = self.bottom(torch.cat([self.numbers, self.embedding(self.words).flatten(1)], 1))
        leaf = activations.detach().requires_grad_(True)
        torch.autograd.backward(F.binary_cross_entropy_with_logits(self.top(leaf)[:, 0], self.labels.float()))
        gradient = leaf.grad if leaf.grad is not None else torch.zeros_like(leaf)
        torch.autograd.backward(activations, gradient)
        return gradient


def _layers(width: int, count: int) -> nn.Sequential:
    sizes = [width, *[WIDTH] * count]
    pairs = itertools.pairwise(sizes)
    return nn.Sequential(*(part for inner, outer in pairs for part in (nn.Linear(inner, outer), nn.ReLU())))


def protection_rows(repeats: int) -> list[Row]:
    """Measure each defence against the step it is added to.

    It draws from the fast stream of audits and from the secure one of real parties.
    """
    step = Step()
    defences: list[Defence] = [SumKL(bound=0.4), SumKL(scale=1.0), IsotropicNoise(), MaxNorm()]
    locals_ = {"fast": Local("label-party", seed=0), "secure": Local("label-party", seed=0, key=SecretKey.new())}
    steps: list[float] = []
    spent: dict[tuple[str, str], list[float]] = {(str(defence), which): [] for defence in defences for which in locals_}
    # The first round warms everything up.
    for number in range(repeats + 1):
        step.draw(number)
        for local in locals_.values():
            local.begin(number)
            local.now.batch = Batch(step.numbers[:, :0], step.labels)
        start = time.perf_counter()
        message = Message(Kind.CUT_GRADIENT, "label-party", "feature-party", number, {"gradient": step()})
        steps.append(1000 * (time.perf_counter() - start))
        for defence in defences:
            for which, local in locals_.items():
                spent[str(defence), which].append(milliseconds(defence.on_message, message, local.scope(str(defence))))
        step.learn()
    whole = statistics.median(steps[1:])
    rows = [Row(f"training step, {BATCH} x {WIDTH}", whole, "ms")]
    for (name, which), times in spent.items():
        bar = BARS[which] if name.startswith("sumkl") else None
        rows.append(
            Row(
                f"{name}, {which} stream: added to a step",
                100 * statistics.median(times[1:]) / whole,
                "%",
                bar,
                at_least=False,
            )
        )
        rows.append(Row(f"{name}, {which} stream: 95 % quantile", 100 * quantile(times[1:], 0.95) / whole, "%"))
    return rows


def quantile(values: list[float], share: float) -> float:
    """Return a quantile of some measured values."""
    return torch.tensor(values, dtype=torch.float64).quantile(share).item()


def main() -> None:
    """Measure the solver, the protection and the training."""
    options = parser(__doc__)
    options.add_argument("--repeats", type=int, default=20, help="training steps to measure")
    chosen = options.parse_args()
    rows = [Row("threads", torch.get_num_threads(), "")]
    rows += solver_rows()
    rows += protection_rows(chosen.repeats)
    rows += training_rows(chosen.repeats)
    show(rows, chosen.json)


if __name__ == "__main__":
    main()
