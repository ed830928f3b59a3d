"""Named random streams: the only source of randomness.

Each purpose draws from its own stream, named by words and derived from one seed, so that adding a draw in one place
changes nothing anywhere else, and the number of workers changes nothing at all. Streams live on the CPU; what they draw
is moved to the device that needs it, so a GPU sees the same numbers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

Stream = torch.Generator


def seed_of(seed: int, *names: object) -> int:
    """Return the 63-bit seed of the stream that these names choose."""
    text = "\x1f".join([str(seed), *map(str, names)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def stream(seed: int, *names: object) -> Stream:
    """Return the random stream that belongs to a seed and these names.

    Example:
        >>> a, b = stream(0, "client-1", "noise"), stream(0, "client-1", "noise")
        >>> torch.equal(torch.rand(3, generator=a), torch.rand(3, generator=b))
        True
    """
    return torch.Generator().manual_seed(seed_of(seed, *names))


def normal_like(tensor: Tensor, rng: Stream) -> Tensor:
    """Draw standard normal noise of a tensor's shape, type and device."""
    return torch.randn(tensor.shape, generator=rng, dtype=tensor.dtype).to(tensor.device)


def uniform_like(tensor: Tensor, rng: Stream) -> Tensor:
    """Draw uniform noise in [0, 1) of a tensor's shape, type and device."""
    return torch.rand(tensor.shape, generator=rng, dtype=tensor.dtype).to(tensor.device)


@contextmanager
def global_seed(seed: int) -> Iterator[None]:
    """Seed torch's global generator inside the block and restore it after.

    Module constructors draw their initial weights from the global generator; this is how they become reproducible
    while the caller's own random state stays as it was.
    """
    with torch.random.fork_rng(devices=[]):
        torch.random.manual_seed(seed)
        yield


def draw(pool: Tensor, count: int, rng: Stream) -> Tensor:
    """Draw from the entries of a pool, none twice unless there are too few.

    Example:
        >>> sorted(draw(torch.tensor([3, 5, 7]), 3, stream(0)).tolist())
        [3, 5, 7]
    """
    if count <= len(pool):
        return pool[torch.randperm(len(pool), generator=rng)[:count]]
    return pool[torch.randint(len(pool), (count,), generator=rng)]
