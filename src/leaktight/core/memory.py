"""Memory: how much is free, what a worker may hold, and how many workers fit."""

from __future__ import annotations

import contextlib
from pathlib import Path

from leaktight.core.threads import cores

SEARCH_MEMORY = 1 << 30
"""How many bytes the candidates may take that a search evaluates together; more of them wait for their turn.

It is the same everywhere: with another number of candidates at a time, sums would round differently.
"""
WORKER_MEMORY = SEARCH_MEMORY + (1 << 29)
"""How many bytes a worker holds at most, about: a search, and the libraries, the data and the model."""
_MEMINFO = Path("/proc/meminfo")
_LIMIT, _HELD = Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")


def free_memory() -> int | None:
    """Return how many bytes this machine, or the container around us, can still give; None if nobody knows."""
    found = []
    with contextlib.suppress(OSError, KeyError, ValueError):
        lines = dict(line.split(":", 1) for line in _MEMINFO.read_text().splitlines())
        found.append(1024 * int(lines["MemAvailable"].split()[0]))
    with contextlib.suppress(OSError, ValueError):
        found.append(int(_LIMIT.read_text()) - int(_HELD.read_text()))
    return max(0, min(found)) if found else None


def workers_that_fit() -> int:
    """Return how many workers fit into the cores and the memory that are free; at least 1."""
    free = free_memory()
    return cores() if free is None else max(1, min(cores(), free // WORKER_MEMORY))
