"""Flower's own programs as processes that we start, watch and stop, with everything that they start themselves."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from leaktight.audit.ray_cluster import private_environment
from leaktight.core.errors import LeaktightError
from leaktight.core.private import private_file, private_folder
from leaktight.flower import guard
from leaktight.flower.quiet import OFF

LOOPBACK = "127.0.0.1"
_STARTING, _PAUSE = 120.0, 0.1


class Programs:
    """Flower's programs: none of them, and nothing that they started, outlives the block, or this process, however that ends.

    Telemetry, update checks and usage statistics are off, whatever a person has set. Files go to a folder for its owner alone.

    Args:
        folder: where Flower keeps its files and logs go.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = private_folder(folder)
        self._started: list[subprocess.Popen[bytes]] = []
        # In a session of its own, so that Ctrl-C does not reach it.
        words = [sys.executable, guard.__file__]
        self._guard = subprocess.Popen(words, stdin=subprocess.PIPE, start_new_session=True)  # noqa: S603 - the words are ours

    def start(self, name: str, *words: str) -> subprocess.Popen[bytes]:
        """Start a program that stays, with its log in `NAME.log`."""
        log = self.log(name)
        private_file(log)
        with log.open("ab") as file:
            started = subprocess.Popen(  # noqa: S603 - the words are ours
                self._words(words),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                env=self._environment(),
                start_new_session=True,
            )
        self._started.append(started)
        self._tell()
        return started

    def do(self, *words: str) -> str:
        """Run a program to its end, and return what it says.

        Raises:
            LeaktightError: it failed, with what it said last.
        """
        done = subprocess.run(  # noqa: S603 - the words are ours
            self._words(words), capture_output=True, text=True, env=self._environment(), stdin=subprocess.DEVNULL, check=False
        )
        if done.returncode:
            raise LeaktightError(f"Flower's `{' '.join(words[:3])}` failed: {last_line(done.stdout + done.stderr)}.")
        return done.stdout

    def wait_for(self, started: subprocess.Popen[bytes], name: str, port: int) -> None:
        """Wait until a program listens on a port of loopback.

        Raises:
            LeaktightError: it ended first, or takes too long.
        """
        until = time.monotonic() + _STARTING
        while time.monotonic() < until and started.poll() is None:
            with socket.socket() as probe:
                if probe.connect_ex((LOOPBACK, port)) == 0:
                    return
            time.sleep(_PAUSE)
        raise LeaktightError(f"Flower's {name} did not start: {self.said(name)}.")

    def log(self, name: str) -> Path:
        """Return where a program's log is."""
        return self.folder / f"{name}.log"

    def said(self, name: str) -> str:
        """Return what a program's log says last."""
        return last_line(self.log(name).read_text(errors="replace"))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Have the guard end all, and wait for it."""
        self._tell()
        if self._guard.stdin is not None:
            self._guard.stdin.close()
        self._guard.wait()
        for started in self._started:
            started.wait()

    def _tell(self) -> None:
        # Once the end of a process was seen, its number may be that of a stranger.
        ours = [str(started.pid) for started in self._started if started.returncode is None]
        if self._guard.stdin is not None:
            self._guard.stdin.write(f"{' '.join(ours)}\n".encode())
            self._guard.stdin.flush()

    def _words(self, words: Sequence[str]) -> list[str]:
        return [str(Path(sys.executable).parent / words[0]), *words[1:]]

    def _environment(self) -> dict[str, str]:
        # Flower starts its own helpers by name.
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
        places = {
            "FLWR_HOME": str(private_folder(self.folder / "home")),
            "RAY_TMPDIR": str(private_folder(self.folder / "ray")),
        }
        found = {**os.environ, **OFF, **places, "PATH": path, "OMP_NUM_THREADS": "1"}
        private_environment(found)
        return found


def free_port() -> int:
    """Return a port of loopback that nobody listens on."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def last_line(text: str) -> str:
    r"""Return the last line of a text that tells of a fault, or else that says anything, as the end of a sentence.

    Example:
        >>> last_line("INFO: starting\nERROR: The key is not known.\nINFO: ended\n")
        'ERROR: The key is not known'
    """
    lines = [line.strip().rstrip(".") for line in text.splitlines() if any(letter.isalnum() for letter in line)]
    faults = [line for line in lines if "Error" in line or "ERROR" in line or "[code:" in line]
    return [*lines[-1:], *faults][-1] if lines else "it said nothing"
