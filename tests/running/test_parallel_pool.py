"""Parallel pools: tasks go to idle workers in order, and no more workers start than there is work for."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from leaktight.running.parallel_pool import TaskQueue, Worker


def assign(tasks: int, workers: list[Worker[Any]], most: int) -> tuple[TaskQueue[Any], list[tuple[int, str]]]:
    """Assign so many tasks, and return who was given which."""
    waiting, given = TaskQueue[Any](), list[tuple[int, str]]()
    for number in range(tasks):
        waiting.add(SimpleNamespace(name=f"task-{number}"))

    def give(worker: Worker[Any], task: Any) -> None:
        worker.task = task
        given.append((workers.index(worker), task.name))

    waiting.assign(workers, most, lambda: Worker(ready=True), give)
    return waiting, given


@pytest.mark.parametrize(("tasks", "most", "started"), [(0, 3, 0), (2, 3, 2), (5, 3, 3)])
def test_as_many_workers_start_as_there_is_work_for(tasks: int, most: int, started: int) -> None:
    workers: list[Worker[Any]] = []
    waiting, given = assign(tasks, workers, most)
    assert len(workers) == len(given) == started
    assert [name for _, name in given] == [f"task-{number}" for number in range(started)]
    assert len(waiting) == tasks - started


def test_whoever_is_busy_or_has_not_started_gets_nothing(byte_task: Callable[..., Any]) -> None:
    busy, starting, idle = Worker(ready=True, task=byte_task("long")), Worker(), Worker(ready=True)
    waiting, given = assign(2, [busy, starting, idle], most=3)
    assert given == [(2, "task-0")]
    assert len(waiting) == 1


def test_the_busy_count_when_workers_are_started(byte_task: Callable[..., Any]) -> None:
    workers: list[Worker[Any]] = [Worker(ready=True, task=byte_task("long"))]
    _, given = assign(1, workers, most=4)
    assert (len(workers), given) == (2, [(1, "task-0")])
