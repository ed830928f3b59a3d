"""Threads: how many cores there are, and how soon torch's idle threads give theirs up."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

SPINS = "20000"


def rest_soon() -> None:
    """Let torch's idle threads sleep after some tenths of a millisecond, not several milliseconds.

    Call it before torch is imported.

    They wait for the next parallel operation by spinning, and keep a core from the threads that draw noise. With no
    wait at all, small operations that follow each other quickly would take half as long again. A user's own setting of
    the variable stays as it is.
    """
    os.environ.setdefault("GOMP_SPINCOUNT", SPINS)


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Let torch use one thread in the block: a sum split over threads rounds differently."""
    # `rest_soon` must be called before torch is there.
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def cores() -> int:
    """Return how many cores this process may use, where the system tells; else how many there are."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1
