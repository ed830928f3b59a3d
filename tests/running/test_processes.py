from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from leaktight.core.errors import LeaktightError
from leaktight.core.record import Status
from leaktight.running import processes
from leaktight.running.audit_task import AuditResult, AuditTask
from leaktight.running.audit_worker import audit_setup
from leaktight.running.parallel_pool import STARTS
from leaktight.running.processes import Processes, _Worker
from leaktight.running.training_cache import TrainingCache
from leaktight.running.worker_pool import PoolResult, WorkerSetup

Plans = Callable[..., Any]
TOYS = Path(__file__).parents[1] / "toys"


def unheard(*_: object) -> None:
    """Take in progress and do nothing about it."""


def do(pool: Any, tasks: list[AuditTask], advance: Callable[..., None]) -> dict[str, AuditResult]:
    for task in tasks:
        pool.submit(task)
    results = [pool.next(advance) for _ in tasks]
    return {result.task.name: result.value for result in results}


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


def gone(pids: list[int], seconds: float = 10) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if not any(map(alive, pids)):
            return True
        time.sleep(0.05)
    return False


def test_two_processes_share_the_work_survive_a_death_and_end_when_interrupted(toy_plan: Plans, tmp_path: Path) -> None:
    """One start of two processes serves many questions, because each start imports torch."""
    log = tmp_path / "log"
    plan = toy_plan(
        attacks={
            "slow one": {"trouble": "slow", "log": str(log), "blur": 0.1},
            "slow two": {"trouble": "slow", "log": str(log), "blur": 0.2},
            "dies once": {"trouble": "die_once", "log": str(tmp_path / "once")},
            "refuses": {"trouble": "refuse"},
            "is broken": {"trouble": "bug", "log": str(tmp_path / "broken")},
        }
    )
    tasks = {cell.label: AuditTask(cell) for cell in plan.cells() if cell.purpose == "measure"}
    long = toy_plan(scenario={"rounds": 4, "pause": 0.2}).cells()[0]
    training_folder = tmp_path / "training"
    training = AuditTask(TrainingCache(training_folder).spec(long))
    with pytest.raises(KeyboardInterrupt), Processes(2, audit_setup(training_folder)) as pool:
        heard: list[tuple[AuditTask, int, int]] = []
        found = do(pool, [training, *tasks.values()], lambda *said: heard.append(said))
        # A task is also told of when it begins.
        heard = [said for said in heard if said[1]]
        workers = [worker.process.pid for worker in pool._workers]
        for _ in range(4):
            pool.submit(tasks["slow one"])
        raise KeyboardInterrupt
    by_label = {label: found[task.name] for label, task in tasks.items()}
    assert {by_label[label].status for label in ("slow one", "slow two", "dies once")} == {Status.DONE}
    assert by_label["refuses"].status is Status.REFUSED
    assert by_label["is broken"].status is Status.FAILED
    assert by_label["is broken"].reason.startswith("TypeError: a fault of the program (leaktight_toys.py:")
    assert len((tmp_path / "broken").read_text().split()) == 1
    assert by_label["slow one"].pictures
    assert found[training.name].status is Status.DONE
    assert {task for task, _, _ in heard} == {training}
    assert heard[0][1:] == (1, 4)
    assert 2 <= len(heard) < 4
    first, second = (tmp_path / "once").read_text().split()
    assert first != second
    assert str(os.getpid()) not in log.read_text()
    assert gone(workers)


class Dead:
    """What is left of a process."""

    exitcode = -signal.SIGKILL

    def join(self, timeout: float | None = None) -> None:
        return

    def is_alive(self) -> bool:
        return False


def test_a_task_that_takes_its_process_down_again_is_given_up(toy_plan: Plans, tmp_path: Path) -> None:
    task = AuditTask(toy_plan().cells()[0])
    pool = Processes(1, audit_setup(tmp_path))
    for expected in (None, task):
        here, there = multiprocessing.Pipe()
        there.close()
        pool._workers = [_Worker(Dead(), here, ready=True, task=task)]
        pool._waiting.clear()
        result = pool._receive(unheard)
        assert (result and result.task) == expected
        assert len(pool._waiting) == (0 if expected else 1)
        assert pool._workers == []
    assert result == PoolResult(
        task,
        lost="The worker process died 2 times (signal SIGKILL). If memory is short, use fewer workers or fewer victims.",
    )


def test_workers_end_with_the_process_that_started_them(tmp_path: Path) -> None:
    code = f"""
import sys, time
from pathlib import Path
sys.path.insert(0, {str(TOYS)!r})
import leaktight_toys as toys
from leaktight.running.audit_task import AuditTask
from leaktight.running.audit_worker import audit_setup
from leaktight.running.processes import Processes
from leaktight.core.defence import Undefended
from leaktight.core.probe import Attempt
from leaktight.core.record import Cell
if __name__ == "__main__":
    toys_log = {str(tmp_path / "log")!r}
    probe = Attempt(attack=toys.ToyAttack(trouble="slow", log=toys_log))
    folder = Path({str(tmp_path)!r})
    with Processes(1, audit_setup(folder)) as pool:
        for seed in range(1000):
            pool.submit(AuditTask(Cell(scenario=toys.ToyScenario(), defence=Undefended(), probe=probe, seed=seed)))
        while True:
            pool.next(lambda *_: None)
"""
    script = tmp_path / "script.py"
    script.write_text(code)
    parent = subprocess.Popen(
        [sys.executable, str(script)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(TOYS), os.environ.get("PYTHONPATH", "")])},
    )
    until = time.monotonic() + 60
    while not (tmp_path / "log").exists() and time.monotonic() < until:
        time.sleep(0.05)
    worker = int((tmp_path / "log").read_text().split()[0])
    assert alive(worker)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    assert gone([worker])


def test_a_process_that_is_killed_while_it_starts_is_started_again(
    toys: ModuleType, tmp_path: Path, byte_task: Any
) -> None:
    log = tmp_path / "log"
    task = byte_task("one", b"asked")
    with Processes(1, WorkerSetup(toys.mortal, tmp_path, {"log": str(log), "deaths": 2})) as pool:
        pool.submit(task)
        assert pool.next(unheard) == PoolResult(task, (b"asked",))
        pids = [int(pid) for pid in log.read_text().split()]
        assert len(set(pids)) == 3
        # A start that went well makes up for those before it.
        assert pool._failed_starts == 0
    assert gone(pids)


def test_a_process_that_cannot_start_is_one_sentence(toy_plan: Plans, tmp_path: Path, monkeypatch: Any) -> None:

    monkeypatch.setattr(processes, "_work", os._exit)
    context = processes.multiprocessing.get_context("spawn")
    monkeypatch.setattr(
        context, "Process", lambda target, args, **rest: type(context).Process(target=os._exit, args=(3,), **rest)
    )
    starts: list[int] = []
    start = processes._start_process
    monkeypatch.setattr(processes, "_start_process", lambda setup: starts.append(1) or start(setup))
    with Processes(1, audit_setup(tmp_path)) as pool:
        pool.submit(AuditTask(toy_plan().cells()[0]))
        with pytest.raises(LeaktightError, match=r"A worker process could not start \(exit code 3\). In a script"):
            pool.next(unheard)
    assert len(starts) == STARTS
