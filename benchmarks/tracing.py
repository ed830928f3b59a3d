"""Tracing by matrix products against the double loop of Algorithm 6, at the size of the paper.

That is 1,000 reconstructions and 10,000 queries.

Images are random, 3x32x32; each query is one of the reconstructions with noise on it, so that the answer is known. The
loop compares pair by pair in single precision, which is its faster way. It is timed on the first queries only
(`--loop`) and its time for all of them is that many times as long, for every query costs the same. Both use one torch
thread, and their answers on those queries must agree.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from _rows import Row, parser, show
from torch import Tensor

from leaktight.core.random import stream
from leaktight.metrics.tracing import trace

SHAPE = (3, 32, 32)
NOISE = 0.2


def images(queries: int, reconstructions: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return queries, reconstructions, and the position of the reconstruction that each query was made from."""
    rng = stream(0, "tracing")
    known = torch.rand(reconstructions, *SHAPE, generator=rng)
    planted = torch.randint(reconstructions, (queries,), generator=rng)
    return known[planted] + NOISE * torch.randn(queries, *SHAPE, generator=rng), known, planted


def literal(queries: Tensor, reconstructions: Tensor) -> Tensor:
    """Return the tracing indices as the paper's pseudocode finds them."""
    found = []
    for query in queries:
        lowest, nearest = float("inf"), 0
        for index, reconstruction in enumerate(reconstructions):
            error = (query - reconstruction).square().mean().item()
            if error < lowest:
                lowest, nearest = error, index
        found.append(nearest)
    return torch.tensor(found)


def timed(work: Callable[[], Tensor]) -> tuple[float, Tensor]:
    """Return the seconds that some work takes, and what it returns."""
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def main() -> None:
    """Measure both ways."""
    made = parser(__doc__)
    made.add_argument("--loop", type=int, default=50, help="how many queries the loop is timed on")
    options = made.parse_args()
    torch.set_num_threads(1)
    queries, known, planted = images(10_000, 1_000)
    fast, answer = timed(lambda: trace(queries, known))
    asked = queries[: options.loop]
    slow, reference = timed(lambda: literal(asked, known))
    whole = slow * len(queries) / len(asked)
    rows = [
        Row("tracing: products against the double loop", whole / fast, "x", 50.0),
        Row("tracing: products, all queries", fast, "s"),
        Row("tracing: double loop, all queries, scaled up", whole, "s"),
        Row(
            "tracing: answers that differ from the loop's",
            float((answer[: len(asked)] != reference).sum()),
            "",
            0.0,
            at_least=False,
        ),
        Row("tracing: queries traced to their own image", 100 * (answer == planted).double().mean().item(), "%"),
    ]
    show(rows, options.json)


if __name__ == "__main__":
    main()
