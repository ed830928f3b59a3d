from __future__ import annotations

import dataclasses
import importlib
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from leaktight.running.audit_task import AuditResult, AuditTask
from leaktight.running.serial import Serial
from leaktight.running.worker_pool import PoolResult, WorkerSetup


@dataclasses.dataclass(frozen=True)
class ByteTask:
    """A task for any pool: some bytes, answered by some bytes."""

    name: str
    content: bytes = b""
    needs: tuple[str, ...] = ()
    makes: tuple[str, ...] = ()

    def encode(self) -> bytes:
        return self.content

    def decode(self, parts: Sequence[bytes]) -> tuple[bytes, ...]:
        return tuple(parts)


@pytest.fixture
def forget_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Return how modules whose names begin alike are forgotten, as in a new process; the folder is on Python's path."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(str(tmp_path))
    forgotten: set[str] = set()

    def forget(prefix: str) -> None:
        forgotten.add(prefix)
        for name in [name for name in sys.modules if name.startswith(prefix)]:
            del sys.modules[name]
        importlib.invalidate_caches()

    yield forget
    for prefix in sorted(forgotten):
        forget(prefix)


@pytest.fixture
def byte_task() -> type[ByteTask]:
    return ByteTask


class Interrupted(Serial[AuditTask, AuditResult]):
    """A pool that is interrupted after some tasks, as Ctrl-C would."""

    def __init__(self, setup: WorkerSetup[AuditTask, AuditResult], after: int) -> None:
        super().__init__(setup)
        self.left = after

    def next(self, advance: Callable[[AuditTask, int, int], None]) -> PoolResult[AuditTask, AuditResult]:
        if self.left == 0:
            raise KeyboardInterrupt
        self.left -= 1
        return super().next(advance)


@pytest.fixture
def interrupted() -> Callable[[int], Callable[[WorkerSetup[AuditTask, AuditResult]], Interrupted]]:
    """Return workers that are interrupted after some tasks."""
    return lambda after: lambda setup: Interrupted(setup, after)
