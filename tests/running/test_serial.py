from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from leaktight.core.scenario import Progress
from leaktight.running.file_cache import FileCache
from leaktight.running.processes import Processes, start_pool
from leaktight.running.serial import Serial
from leaktight.running.worker_pool import PoolResult, WorkerSetup


class Recorder:
    """A worker function that notes how many threads there are, and cannot be sent anything."""

    def __init__(self, cache: FileCache, options: Any) -> None:
        self.cache = cache

    def __call__(self, task: Any, progress: Progress) -> tuple[bytes, int]:
        progress(1, 2)
        return task.content, torch.get_num_threads()

    def answer(self, content: bytes, progress: Progress) -> list[bytes]:
        raise AssertionError("Nothing has to be encoded in one process.")


def setup(tmp_path: Path) -> WorkerSetup[Any, Any]:
    return WorkerSetup(Recorder, tmp_path)


def test_tasks_are_done_in_order_with_one_thread_and_the_others_are_given_back(tmp_path: Path, byte_task: Any) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    first, second, heard = byte_task("first", b"1"), byte_task("second", b"2"), list[Any]()
    try:
        with Serial(setup(tmp_path)) as pool:
            for task in (first, second):
                pool.submit(task)
            assert heard == []
            results = [pool.next(lambda *said: heard.append(said)) for _ in range(2)]
        assert results == [PoolResult(first, (b"1", 1)), PoolResult(second, (b"2", 1))]
        assert heard == [(first, 1, 2), (second, 1, 2)]
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_what_was_not_done_is_forgotten_and_an_error_is_the_callers(tmp_path: Path, byte_task: Any) -> None:
    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), Serial(setup(tmp_path)) as pool:
        for name in ("one", "two"):
            pool.submit(byte_task(name))
        pool.next(fail)
    assert not pool._tasks


def test_one_worker_is_this_process_and_two_are_others(tmp_path: Path) -> None:
    pools = [start_pool(workers, setup(tmp_path)) for workers in (1, 2)]
    assert [type(pool) for pool in pools] == [Serial, Processes]
    assert start_pool(Serial, setup(tmp_path))._function.cache == pools[0]._function.cache
