"""The guard: a process that ends others, and all below them, when the process that started it closes its pipe or is gone, however that ended.

It is run as a file of its own, so it uses nothing but Python.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable

PATIENCE = 5.0
_PAUSE = 0.1


def end(pids: Iterable[int]) -> None:
    """End processes and all below them: politely, and after some seconds not."""
    # Helpers may have sessions of their own, so they are found by their parents while these are there.
    wanted = below(pids)
    for word in (signal.SIGTERM, signal.SIGKILL):
        for pid in wanted:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, word)
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            wanted &= parents().keys()
            if not wanted:
                return
            time.sleep(_PAUSE)


def below(pids: Iterable[int]) -> set[int]:
    """Return the processes among these that live, with all below them."""
    known = parents()
    found, size = set(pids) & known.keys(), -1
    while len(found) > size:
        size = len(found)
        found |= {pid for pid, parent in known.items() if parent in found}
    return found


def parents() -> dict[int, int]:
    """Return the parent of every process that lives."""
    with subprocess.Popen(["ps", "-A", "-o", "pid=,ppid=,stat="], stdout=subprocess.PIPE, text=True) as listing:  # noqa: S607
        rows = [line.split() for line in listing.communicate()[0].splitlines()]
    # It lists itself.
    return {int(pid): int(up) for pid, up, state in rows if not state.startswith("Z") and int(pid) != listing.pid}


def main() -> None:
    """Take in lines with the processes' numbers until the pipe closes; then end those of the last line."""
    last = ""
    for line in sys.stdin:
        last = line
    end(map(int, last.split()))


if __name__ == "__main__":
    main()
