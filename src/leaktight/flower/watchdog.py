"""The watchdog: a process that ends others, and all that they started, when its own starter closes a pipe or dies.

It runs as a program of its own, so it uses nothing but Python.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

PATIENCE = 5.0
_PAUSE = 0.1


def end(pids: Iterable[int], mark: str = "", network: str = "") -> None:
    """End processes and all that they started: by SIGTERM, and after some seconds by SIGKILL.

    Args:
        pids: the processes.
        mark: what every one of them has in its environment; with it those are found whose parents ended before them.
        network: the network namespace that they are in, if they have one of their own; nobody else is in there.
    """
    known = set(pids)
    for number in (signal.SIGTERM, signal.SIGKILL):
        # Helpers may have sessions of their own, so they are found by their parents while these are there.
        known = with_descendants(known | marked_processes(mark, network))
        _send(number, known)
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            known = with_descendants(known | marked_processes(mark, network))
            if not known:
                return
            time.sleep(_PAUSE)


def with_descendants(pids: Iterable[int]) -> set[int]:
    """Return the processes among these that live, with all below them."""
    known = parents()
    family, size = set(pids) & known.keys(), -1
    while len(family) > size:
        size = len(family)
        family |= {pid for pid, parent in known.items() if parent in family}
    return family


def marked_processes(mark: str, network: str) -> set[int]:
    """Return the processes with a mark in their environment, or in a network, whoever started them; needs /proc."""
    if not mark and not network:
        return set()
    pids = set()
    for place in Path("/proc").glob("[0-9]*"):
        # Gone meanwhile, or somebody else's.
        with contextlib.suppress(OSError):
            if (network and os.readlink(place / "ns/net") == network) or (
                mark and mark.encode() in (place / "environ").read_bytes().split(b"\0")
            ):
                pids.add(int(place.name))
    return pids - {os.getpid()}


def parents() -> dict[int, int]:
    """Return the parent of every process that lives."""
    with subprocess.Popen(["ps", "-A", "-o", "pid=,ppid=,stat="], stdout=subprocess.PIPE, text=True) as listing:  # noqa: S607
        rows = [line.split() for line in listing.communicate()[0].splitlines()]
    # It lists itself.
    return {int(pid): int(up) for pid, up, state in rows if not state.startswith("Z") and int(pid) != listing.pid}


def _send(number: signal.Signals, pids: Iterable[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def main(folder: str, mark: str = "", holder: str = "") -> None:
    """Read lines of process numbers until the pipe closes; then end those of the last line, and remove their folder.

    Args:
        folder: with the private files of what is ended.
        mark: see `end`.
        holder: a process in the network namespace of what is ended, if it has one of its own.
    """
    network = os.open(f"/proc/{holder}/ns/net", os.O_RDONLY) if holder else None
    last = ""
    for line in sys.stdin:
        last = line
    # As long as it is open here, no other namespace gets its name.
    end(map(int, last.split()), mark, os.readlink(f"/proc/self/fd/{network}") if network is not None else "")
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
