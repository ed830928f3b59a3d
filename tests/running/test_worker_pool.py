"""Crews: errands go to idle workers in order, and no more workers start than there is work for."""

from __future__ import annotations

import pytest

from leaktight.running.worker_pool import PoolTask, TaskQueue, Worker


def dealt(errands: int, workers: list[Worker], most: int) -> tuple[TaskQueue, list[tuple[int, str]]]:
    """Deal so many errands out, and return who was given which."""
    waiting, given = TaskQueue(), list[tuple[int, str]]()
    for number in range(errands):
        waiting.add(PoolTask(f"errand-{number}", b""))

    def give(worker: Worker, errand: PoolTask) -> None:
        worker.errand = errand
        given.append((workers.index(worker), errand.name))

    waiting.deal(workers, most, lambda: Worker(ready=True), give)
    return waiting, given


@pytest.mark.parametrize(("errands", "most", "started"), [(0, 3, 0), (2, 3, 2), (5, 3, 3)])
def test_as_many_workers_start_as_there_is_work_for(errands: int, most: int, started: int) -> None:
    workers: list[Worker] = []
    waiting, given = dealt(errands, workers, most)
    assert len(workers) == len(given) == started
    assert [name for _, name in given] == [f"errand-{number}" for number in range(started)]
    assert len(waiting) == errands - started


def test_whoever_is_busy_or_has_not_started_gets_nothing() -> None:
    busy, starting, idle = Worker(ready=True), Worker(), Worker(ready=True)
    busy.errand = PoolTask("long", b"")
    waiting, given = dealt(2, [busy, starting, idle], most=3)
    assert given == [(2, "errand-0")]
    assert len(waiting) == 1


def test_the_busy_count_when_workers_are_started() -> None:
    workers = [Worker(ready=True, errand=PoolTask("long", b""))]
    _, given = dealt(1, workers, most=4)
    assert (len(workers), given) == (2, [(1, "errand-0")])
