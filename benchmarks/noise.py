"""Noise: normal numbers of the secure stream against `torch.randn`, and what the noise of a guarantee costs.

Each size is drawn in turn by both, from streams that are already open; the median of each counts, and ratios are of one
run. A million numbers are about a small image network, ten million a ResNet-18. `torch.randn` draws with one thread
whatever it is given; the secure stream uses all.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import torch
from _rows import Row, parser, show

from leaktight.core.allocator import keep_memory
from leaktight.core.random import stream
from leaktight.core.secure import SecretKey

SIZES = (100_000, 1_000_000, 10_000_000)
BAR = 2.5


def nanoseconds(draw: Callable[[tuple[int]], object], size: int) -> float:
    """Return how long one number of a draw takes."""
    start = time.perf_counter()
    draw((size,))
    return 1e9 * (time.perf_counter() - start) / size


def noise_rows(threads: int, repeats: int) -> list[Row]:
    """Measure every size with so many threads."""
    torch.set_num_threads(threads)
    rng, draws = stream(0), SecretKey.new().draws()
    rows = []
    for size in SIZES:
        ways: dict[str, Callable[[tuple[int]], object]] = {
            "torch": lambda shape: torch.randn(shape, generator=rng),
            "secure": draws.normals,
            "private": draws.private_normals,
        }
        # The first round warms everything up.
        turns = [{name: nanoseconds(draw, size) for name, draw in ways.items()} for _ in range(repeats + 1)][1:]
        times = {name: statistics.median(turn[name] for turn in turns) for name in ways}
        what = f"{size:,} numbers, {threads} thread{'s' if threads > 1 else ''}"
        rows.append(Row(f"{what}: torch.randn", times["torch"], "ns"))
        rows.append(Row(f"{what}: secure", times["secure"] / times["torch"], "x", BAR, at_least=False))
        rows.append(Row(f"{what}: secure, four draws for a guarantee", times["private"] / times["torch"], "x"))
    return rows


def main() -> None:
    """Measure with one thread and with two."""
    options = parser(__doc__)
    options.add_argument("--repeats", type=int, default=15, help="draws of each size to measure")
    chosen = options.parse_args()
    keep_memory()
    show([row for threads in (1, 2) for row in noise_rows(threads, chosen.repeats)], chosen.json)


if __name__ == "__main__":
    main()
