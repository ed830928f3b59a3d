"""Draws: the random numbers that a party asks its `Local` for, whether from a seed or from a secret key."""

from __future__ import annotations

import abc
import dataclasses
import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager

import torch
from torch import Tensor

from leaktight.core.random import Stream, global_seed, seed_of

BLOCK = 2**17
"""How many normal numbers one thread draws at a time."""
Work = Callable[[Tensor, "Draws", int], object]


class Draws(abc.ABC):
    """Random numbers from one stream, one after the other.

    A stream lives on the CPU; numbers are moved to the device that needs them.
    """

    @abc.abstractmethod
    def normals(self, shape: Sequence[int], dtype: torch.dtype = torch.float32) -> Tensor:
        """Draw standard normal numbers."""

    @abc.abstractmethod
    def uniforms(self, shape: Sequence[int], dtype: torch.dtype = torch.float32) -> Tensor:
        """Draw numbers from [0, 1)."""

    @abc.abstractmethod
    def integers(self, high: int, shape: Sequence[int] = ()) -> Tensor:
        """Draw whole numbers from 0 to `high` - 1, all equally likely."""

    @abc.abstractmethod
    def permutation(self, count: int) -> Tensor:
        """Draw an order of so many things, all equally likely."""

    @abc.abstractmethod
    def initialise(self) -> AbstractContextManager[None]:
        """Let the modules that are made inside the block draw their initial weights from here."""

    @abc.abstractmethod
    def fill(self, out: Tensor) -> None:
        """Fill a flat tensor in single precision with standard normal numbers, in place, by one thread."""

    @abc.abstractmethod
    def each(self, work: Work, blocks: Sequence[Tensor]) -> None:
        """Do some work on each block, with the stream that its numbers come from and the number of its thread."""

    def private_normals(self, shape: Sequence[int], dtype: torch.dtype = torch.float32) -> Tensor:
        """Draw standard normal numbers for a privacy guarantee: as `normals`, unless floating point could undo them."""
        return self.normals(shape, dtype)

    def normal_like(self, tensor: Tensor) -> Tensor:
        """Draw standard normal numbers of a tensor's shape, type and device."""
        return self.normals(tensor.shape, tensor.dtype).to(tensor.device)

    def private_normal_like(self, tensor: Tensor) -> Tensor:
        """Draw standard normal numbers for a guarantee, of a tensor's shape, type and device."""
        return self.private_normals(tensor.shape, tensor.dtype).to(tensor.device)

    def laplace_like(self, tensor: Tensor) -> Tensor:
        """Draw standard Laplace numbers (variance 2) of a tensor's shape, type and device."""
        # In double precision: 24-bit uniform numbers would cut the tail off at 17 scales.
        return laplace_from_uniform(self.uniforms(tensor.shape, torch.float64)).to(tensor.dtype).to(tensor.device)

    def many_normals(self, shape: tuple[int, ...], like: Tensor) -> Tensor:
        """Draw standard normal numbers by all of torch's threads, of another tensor's type and device.

        They are drawn in single precision, then converted. A large draw is cut into blocks. The numbers are the same
        for any number of threads.

        Example:
            >>> public_draws(0).many_normals((2, 3), torch.zeros(1, dtype=torch.float64)).dtype
            torch.float64
        """
        normals = torch.empty(math.prod(shape), dtype=torch.float32)
        self.each(lambda block, own, _: own.fill(block), torch.split(normals, BLOCK))
        return normals.view(shape).to(like)

    def add_normals(self, matrix: Tensor, places: Tensor, std: float) -> None:
        """Add normal noise to some rows of a matrix, in place; the noise itself is never all in memory.

        Args:
            matrix: one row per example.
            places: the rows that get noise, each at most once.
            std: the noise's standard deviation in every direction.

        Example:
            >>> matrix = torch.zeros(3, 2)
            >>> public_draws(0).add_normals(matrix, torch.tensor([2]), 1.0)
            >>> (matrix != 0).any(1)
            tensor([False, False,  True])
        """
        rows = max(BLOCK // matrix.shape[1], 1)
        # Memory of each thread's own, used again and again: fresh memory costs as much as drawing.
        scratch = torch.empty(torch.get_num_threads(), min(rows, len(places)), matrix.shape[1], dtype=torch.float32)

        def add(some: Tensor, own: Draws, thread: int) -> object:
            noise = scratch[thread, : len(some)]
            own.fill(noise.view(-1))
            return matrix.index_add_(0, some, noise.to(matrix), alpha=std)

        self.each(add, torch.split(places, rows))


class SeededDraws(Draws):
    """Draws that whoever knows the seed can repeat: for audits, simulations, and what all parties must draw alike.

    Args:
        rng: the named stream.

    Example:
        >>> one, other = public_draws(0, "noise"), public_draws(0, "noise")
        >>> torch.equal(one.normals((3,)), other.normals((3,)))
        True
    """

    def __init__(self, rng: Stream) -> None:
        self.rng = rng

    def normals(self, shape: Sequence[int], dtype: torch.dtype = torch.float32) -> Tensor:
        """Draw standard normal numbers."""
        return torch.randn(tuple(shape), generator=self.rng, dtype=dtype)

    def uniforms(self, shape: Sequence[int], dtype: torch.dtype = torch.float32) -> Tensor:
        """Draw numbers from [0, 1)."""
        return torch.rand(tuple(shape), generator=self.rng, dtype=dtype)

    def integers(self, high: int, shape: Sequence[int] = ()) -> Tensor:
        """Draw whole numbers from 0 to `high` - 1."""
        return torch.randint(high, tuple(shape), generator=self.rng)

    def permutation(self, count: int) -> Tensor:
        """Draw an order of so many things."""
        return torch.randperm(count, generator=self.rng)

    def initialise(self) -> AbstractContextManager[None]:
        """Seed torch's global generator inside the block, with the stream's own seed."""
        return global_seed(self.rng.initial_seed())

    def fill(self, out: Tensor) -> None:
        """Fill a flat tensor with standard normal numbers."""
        out.normal_(generator=self.rng)

    def each(self, work: Work, blocks: Sequence[Tensor]) -> None:
        """Do some work on each block in one of torch's threads, each with a stream of its own.

        This stream draws the seeds of the others. If there is only one block, it gets this stream.
        """
        if len(blocks) < 2:
            for block in blocks:
                work(block, self, 0)
            return
        seeds = torch.randint(2**63 - 1, (len(blocks),), generator=self.rng).tolist()
        parts = [(block, PublicSeed(seed).draws()) for block, seed in zip(blocks, seeds, strict=True)]
        threads = torch.get_num_threads()

        def part(thread: int) -> None:
            for block, own in parts[thread::threads]:
                work(block, own, thread)

        with ThreadPoolExecutor(threads) as pool:
            others = [pool.submit(part, thread) for thread in range(1, threads)]
            part(0)
            # Asked for, so that an error in a thread is raised here.
            for other in others:
                other.result()


class Root(abc.ABC):
    """What streams derive from by names: a seed that others know, or a secret key."""

    @abc.abstractmethod
    def derive(self, *names: object) -> Root:
        """Return the root that belongs to some names."""

    @abc.abstractmethod
    def draws(self) -> Draws:
        """Return the stream of this root, from its beginning."""


@dataclasses.dataclass(frozen=True)
class PublicSeed(Root):
    """A seed that others may know: of an audit, of a simulation, or agreed on by all parties."""

    seed: int

    def derive(self, *names: object) -> PublicSeed:
        """Return the seed that belongs to some names."""
        return PublicSeed(seed_of(self.seed, *names))

    def draws(self) -> SeededDraws:
        """Return the stream of this seed."""
        return SeededDraws(torch.Generator().manual_seed(self.seed))


def public_draws(seed: int, *names: object) -> SeededDraws:
    """Return draws that all parties must repeat, such as the fixed layer of class keys. They hide nothing from anybody.

    Args:
        seed: agreed on by all.
        names: what is drawn; none for the stream of the seed itself.
    """
    root = PublicSeed(seed)
    return (root.derive(*names) if names else root).draws()


def laplace_from_uniform(uniform: Tensor) -> Tensor:
    r"""Turn uniform numbers in [0, 1) into standard Laplace ones by the inverse distribution function.

    Twice the number is split into a sign (which half it fell in) and a fraction \(f\) in [0, 1), and \(-\ln(1 - f)\) is
    the magnitude. The fraction never reaches 1, so that no value is infinite; the textbook form
    \(-\mathrm{sgn}(u - 1/2) \ln(1 - 2|u - 1/2|)\) is infinite at \(u = 0\).

    Example:
        >>> laplace_from_uniform(torch.tensor([0.0, 0.25, 0.5, 0.75], dtype=torch.float64))
        tensor([-0.0000, -0.6931,  0.0000,  0.6931], dtype=torch.float64)
    """
    upper = uniform >= 0.5
    fraction = 2 * uniform - upper.to(uniform.dtype)
    return torch.where(upper, 1.0, -1.0).to(uniform.dtype) * -torch.log1p(-fraction)
