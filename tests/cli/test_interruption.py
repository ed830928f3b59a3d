"""An audit that is interrupted or killed, then the same command again: real processes."""

from __future__ import annotations

import inspect
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from leaktight.cli import split
from leaktight.cli.main import app
from leaktight.running.store import Store

TOYS = Path(__file__).parents[1] / "toys"
CELLS = 10

PLAN = """
scenario = {{ kind = "toy_scenario" }}
metrics = ["psnr", "reconstruction_statement"]
[[attacks]]
kind = "toy_attack"
trouble = "slow"
blur = 0.1
log = "{log}"
[grid]
seeds = [0, 1, 2, 3, 4]
victims = 2
"""


Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start(launch: Start, tmp_path: Path) -> Start:
    """Return what starts the audit, as a session of its own."""
    (tmp_path / "plan.toml").write_text(PLAN.format(log=tmp_path / "log"))
    command = [sys.executable, "-m", "leaktight.cli", "audit", "plan.toml", "--workers", "2", "--out", "out"]
    path = os.pathsep.join(filter(None, [str(TOYS), os.environ.get("PYTHONPATH")]))
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    options = {"cwd": tmp_path, "env": {**os.environ, "PYTHONPATH": path}, "start_new_session": True, **pipes}
    return lambda *more: launch([*command, *more], **options)


def attacked(folder: Path) -> list[str]:
    log = folder / "log"
    return log.read_text().split() if log.exists() else []


def wait_for(count: int, folder: Path, seconds: float = 90) -> None:
    until = time.monotonic() + seconds
    while len(attacked(folder)) < count and time.monotonic() < until:
        time.sleep(0.02)
    assert len(attacked(folder)) >= count


def gone(pids: list[str]) -> bool:
    until = time.monotonic() + 10
    while time.monotonic() < until:
        if not any(Path(f"/proc/{pid}").exists() for pid in pids):
            return True
        time.sleep(0.05)
    return False


@pytest.mark.long
def test_kill_and_interrupt_lose_nothing(start: Start, tmp_path: Path) -> None:
    first = start()
    wait_for(4, tmp_path)
    first.send_signal(signal.SIGKILL)
    first.communicate()
    assert first.returncode == -signal.SIGKILL
    workers = sorted(set(attacked(tmp_path)))
    assert gone(workers)
    with Store.read(tmp_path / "out") as store:
        kept, begun = CELLS - store.missing(), len(attacked(tmp_path))
    assert kept >= 1
    assert begun - kept <= 2

    second = start()
    wait_for(begun + 2, tmp_path)
    # A terminal sends Ctrl-C to every process of the command.
    os.killpg(second.pid, signal.SIGINT)
    _, said = second.communicate()
    assert second.returncode == 130
    assert said.splitlines()[-1] == "Interrupted: finished cells are kept; run the same command to resume."
    assert gone(sorted(set(attacked(tmp_path))))
    with Store.read(tmp_path / "out") as store:
        assert CELLS - store.missing() >= kept

    with Store.read(tmp_path / "out") as store:
        kept, begun = CELLS - store.missing(), len(attacked(tmp_path))
    third = start("--workers", "1")
    shown, said = third.communicate()
    assert third.returncode == 0
    assert said.splitlines()[-1].startswith("Took ")
    assert "Report: out/report.html" in shown
    assert len(attacked(tmp_path)) == begun + CELLS - kept
    with Store.read(tmp_path / "out") as store:
        assert store.missing() == 0


def test_a_request_to_terminate_ends_it_like_ctrl_c(start: Start, tmp_path: Path) -> None:
    running = start()
    wait_for(2, tmp_path)
    running.send_signal(signal.SIGTERM)
    _, said = running.communicate()
    assert running.returncode == 143
    assert said.splitlines()[-1] == "Terminated: finished cells are kept; run the same command to resume."
    assert gone(sorted(set(attacked(tmp_path))))


@pytest.mark.parametrize(
    ("what", "code", "said"),
    [(signal.SIGTERM, 143, "Terminated"), (signal.SIGINT, 130, "Interrupted")],
    ids=["SIGTERM", "SIGINT"],
)
def test_a_command_without_a_sentence_of_its_own_has_one(
    leaktight: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, what: signal.Signals, code: int, said: str
) -> None:
    before = {one: signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)}
    # A suite that runs in the background ignores Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    stopped: list[bool] = []

    def read_store(*_: object, **__: object) -> None:
        try:
            os.kill(os.getpid(), what)
            time.sleep(10)
        finally:
            stopped.append(True)

    monkeypatch.setattr("leaktight.running.store.Store.read", read_store)
    try:
        found = leaktight("report", "folder")
    finally:
        signal.signal(signal.SIGINT, before[signal.SIGINT])
    assert (found.code, found.out, found.err) == (code, "", f"{said}: the command is not done; run it again.\n")
    assert stopped == [True]
    assert signal.getsignal(signal.SIGTERM) == before[signal.SIGTERM]


def test_every_command_is_stopped_with_a_sentence() -> None:
    commands = [*app.registered_commands, *split.app.registered_commands]
    assert len(commands) > 12
    for one in commands:
        assert inspect.unwrap(one.callback) is not one.callback
