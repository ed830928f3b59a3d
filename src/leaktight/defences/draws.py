"""Large draws of normal numbers, by all of torch's threads."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import Tensor

from leaktight.core.random import Stream

BLOCK = 2**17


def normals(shape: tuple[int, ...], like: Tensor, rng: Stream) -> Tensor:
    """Draw standard normal numbers in single precision, then of the type and device of what they are for.

    One stream feeds one thread, and drawing is most of what label protection costs. So a large draw is cut into blocks with streams of
    their own, whose seeds the given stream draws: the numbers are the same for any number of threads.

    Example:
        >>> normals((2, 3), torch.zeros(1, dtype=torch.float64), torch.Generator().manual_seed(0)).dtype
        torch.float64
    """
    drawn = torch.empty(math.prod(shape), dtype=torch.float32)
    _each(lambda block, own, _: block.normal_(generator=own), torch.split(drawn, BLOCK), rng)
    return drawn.view(shape).to(like)


def add_normals(matrix: Tensor, places: Tensor, std: float, rng: Stream) -> None:
    """Add normal noise to some rows of a matrix, in place; the noise itself is never all in memory.

    Args:
        matrix: one row per example.
        places: the rows that get noise, each at most once.
        std: the noise's standard deviation in every direction.
        rng: where it is drawn from, as by `normals`.

    Example:
        >>> matrix = torch.zeros(3, 2)
        >>> add_normals(matrix, torch.tensor([2]), 1.0, torch.Generator().manual_seed(0))
        >>> (matrix != 0).any(1)
        tensor([False, False,  True])
    """
    rows = max(BLOCK // matrix.shape[1], 1)
    # Memory of each thread's own, used again and again: fresh memory costs as much as drawing.
    scratch = torch.empty(torch.get_num_threads(), min(rows, len(places)), matrix.shape[1], dtype=torch.float32)

    def add(some: Tensor, own: Stream, thread: int) -> object:
        drawn = scratch[thread, : len(some)].normal_(generator=own)
        return matrix.index_add_(0, some, drawn.to(matrix), alpha=std)

    _each(add, torch.split(places, rows), rng)


def _each(work: Callable[[Tensor, Stream, int], object], blocks: Sequence[Tensor], rng: Stream) -> None:
    """Do some work on each block with a stream of its own, in the thread of the given number; on one block with the given stream."""
    if len(blocks) < 2:
        for block in blocks:
            work(block, rng, 0)
        return
    seeds = torch.randint(2**63 - 1, (len(blocks),), generator=rng).tolist()
    threads = torch.get_num_threads()

    def part(thread: int) -> None:
        for block, seed in list(zip(blocks, seeds, strict=True))[thread::threads]:
            work(block, torch.Generator().manual_seed(seed), thread)

    with ThreadPoolExecutor(threads) as pool:
        others = [pool.submit(part, thread) for thread in range(1, threads)]
        part(0)
        # Asked for, so that an error in a thread is raised here.
        for other in others:
            other.result()
