from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

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
