"""Flower's own programs as processes that we start, watch and stop, with everything that they start themselves."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from leaktight.core.errors import LeaktightError
from leaktight.core.local_users import require_alone
from leaktight.core.private import private_file, private_folder
from leaktight.flower import TELEMETRY_OFF, namespace, patches, watchdog
from leaktight.flower.node_state import SIMULATION
from leaktight.running.ray_cluster import private_environment, write_token

LOOPBACK = "127.0.0.1"
MARK = "LEAKTIGHT_PROGRAMS"
"""The variable by which a process shows that it belongs to ours, also when its parent is gone."""
_STARTING, _PAUSE = 120.0, 0.1


class Programs:
    """Flower's programs; neither they nor what they started outlives the block, or this process, however that ends.

    They run in a network of their own, where the machine permits one: other users cannot reach their ports, and they
    reach no other machine. Telemetry, update checks and usage statistics are off, whatever a user has set. Files are
    for their owner alone.

    Args:
        folder: where Flower keeps its files; removed afterwards.
        logs: where logs go; they stay.
        trust: whether other users of this machine may reach the programs; then they run in the network of the machine.

    Set `simulation` before anything is started, if its nodes are to draw from the agreed seed.
    """

    def __init__(self, folder: Path, logs: Path, trust: bool = False) -> None:
        self.folder, self.logs = private_folder(folder), private_folder(logs)
        self.simulation = False
        self._started: dict[str, subprocess.Popen[bytes]] = {}
        self._ended: list[subprocess.Popen[bytes]] = []
        self._mark = f"{MARK}={secrets.token_hex(8)}"
        self._holder = None if trust else _hold_network()
        if self._holder is None:
            require_alone("Flower's SuperLink", trust)
        words = [
            sys.executable,
            watchdog.__file__,
            str(self.folder),
            self._mark,
            str(self._holder.pid) if self._holder else "",
        ]
        # In a session of its own, so that Ctrl-C does not reach it.
        self._watchdog = subprocess.Popen(words, stdin=subprocess.PIPE, start_new_session=True)  # noqa: S603 - the words are ours
        patches.write_programs(private_folder(self.folder / "bin"), sys.executable)
        write_token(self.folder / "ray-token")

    def start(self, name: str, *words: str) -> subprocess.Popen[bytes]:
        """Start a program that stays, with its log in `NAME.log`."""
        log = self.log(name)
        private_file(log)
        with log.open("ab") as file:
            process = subprocess.Popen(  # noqa: S603 - the words are ours
                self._command(words),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                env=self._environment(name),
                start_new_session=True,
            )
        if name in self._started:
            self._ended.append(self._started[name])
        self._started[name] = process
        self._update_watchdog()
        return process

    def run(self, *words: str) -> str:
        """Run a program to its end, and return what it says.

        Raises:
            LeaktightError: it failed, with what it said last.
        """
        process = subprocess.run(  # noqa: S603 - the words are ours
            self._command(words),
            capture_output=True,
            text=True,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            check=False,
        )
        if process.returncode:
            raise LeaktightError(
                f"Flower's `{' '.join(words[:3])}` failed: {last_line(process.stdout + process.stderr)}."
            )
        return process.stdout

    def wait_for(self, name: str, port: int) -> None:
        """Wait until a program listens on a port of loopback.

        Raises:
            LeaktightError: it ended first, or takes too long.
        """
        until = time.monotonic() + _STARTING
        while time.monotonic() < until and self._started[name].poll() is None:
            if self._listens(port):
                return
            time.sleep(_PAUSE)
        raise LeaktightError(f"Flower's {name} did not start: {self.last_message(name)}.")

    def check(self, *names: str) -> None:
        """Raise if a program ended that must not, or if an app that it ran was killed.

        Raises:
            LeaktightError: how it ended, and where its log is.
        """
        for name in names:
            code = self._started[name].poll()
            cause = (
                patches.app_end(self.folder, name) if code is None else f"Flower's {name} ended ({exit_cause(code)})"
            )
            if cause:
                raise LeaktightError(
                    f"{cause} in the middle of the training run. Train again; its log is `{self.log(name)}`."
                )

    def end(self, name: str) -> None:
        """End a program with all that it started."""
        watchdog.end([self._started[name].pid])
        self._started[name].wait()

    def log(self, name: str) -> Path:
        """Return where a program's log is."""
        return self.logs / f"{name}.log"

    def last_message(self, name: str) -> str:
        """Return what a program's log says last."""
        return last_line(self.log(name).read_text(errors="replace"))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Have the watchdog end all, and wait for it."""
        self._update_watchdog()
        for helper in (self._watchdog, self._holder):
            if helper is not None:
                if helper.stdin is not None:
                    helper.stdin.close()
                helper.wait()
                if helper.stdout is not None:
                    helper.stdout.close()
        for process in (*self._ended, *self._started.values()):
            process.wait()

    def _update_watchdog(self) -> None:
        # Once the end of a process was seen, its number may be that of a stranger.
        ours = [str(process.pid) for process in self._started.values() if process.returncode is None]
        if self._watchdog.stdin is not None:
            self._watchdog.stdin.write(f"{' '.join(ours)}\n".encode())
            self._watchdog.stdin.flush()

    def _command(self, words: Sequence[str]) -> list[str]:
        own = self.folder / "bin" / words[0]
        program = str(own if own.exists() else Path(sys.executable).parent / words[0])
        if self._holder is None:
            return [program, *words[1:]]
        return [sys.executable, namespace.__file__, "join", str(self._holder.pid), program, *words[1:]]

    def _listens(self, port: int) -> bool:
        if self._holder is not None:
            return namespace.listens(self._holder.pid, port)
        with socket.socket() as probe:
            return probe.connect_ex((LOOPBACK, port)) == 0

    def _environment(self, name: str = "") -> dict[str, str]:
        # Flower starts its own helpers by name.
        path = os.pathsep.join(
            [str(self.folder / "bin"), str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]
        )
        places = {
            "FLWR_HOME": str(private_folder(self.folder / "home")),
            "RAY_TMPDIR": str(private_folder(self.folder / "ray")),
            **patches.environment(self.folder, name),
            **dict([self._mark.split("=")]),
        }
        environment = {**os.environ, **TELEMETRY_OFF, **places, "PATH": path, "OMP_NUM_THREADS": "1"}
        # Whatever a user has set: what deployed nodes draw must be secret.
        environment.pop(SIMULATION, None)
        environment |= {SIMULATION: "1"} if self.simulation else {}
        private_environment(environment, self.folder / "ray-token")
        return environment


def _hold_network() -> subprocess.Popen[bytes] | None:
    """Return a process that holds a network of our own, or None if there cannot be one."""
    words = [sys.executable, namespace.__file__, "hold"]
    holder = subprocess.Popen(  # noqa: S603 - the words are ours
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    )
    reply = holder.stdout.readline().decode() if holder.stdout is not None else ""
    if reply.split()[-1:] == [namespace.NET]:
        return holder
    holder.communicate()
    return None


def free_port() -> int:
    """Return a port of loopback that nobody listens on."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def exit_cause(code: int) -> str:
    """Return how a process ended, in words.

    Example:
        >>> exit_cause(-9), exit_cause(3)
        ('signal SIGKILL', 'exit code 3')
    """
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def last_line(text: str) -> str:
    r"""Return the last line of a text that names a fault, or else the last line with a word, as the end of a sentence.

    Example:
        >>> last_line("INFO: starting\nERROR: The key is not known.\nINFO: ended\n")
        'ERROR: The key is not known'
    """
    lines = [line.strip().rstrip(".") for line in text.splitlines() if any(sign.isalnum() for sign in line)]
    faults = [line for line in lines if "Error" in line or "ERROR" in line or "[code:" in line]
    return [*lines[-1:], *faults][-1] if lines else "it said nothing"
