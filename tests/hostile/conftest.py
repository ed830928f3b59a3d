"""One process runs all commands, so that torch is loaded once; it starts anew if one of them hangs or kills it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))


class Server:
    """The process, and how to ask it."""

    def __init__(self) -> None:
        self.start()

    def start(self) -> None:
        command = [sys.executable, str(HERE / "served.py")]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)

    def run(self, words: list[str], folder: Path) -> dict[str, Any]:
        self.process.stdin.write(json.dumps([words, str(folder)]) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            code = self.process.wait()
            self.stop()
            self.start()
            return {"code": code, "out": "", "err": "Traceback: the process died", "seconds": 0.0, "peak": 0}
        return json.loads(answer)

    def stop(self) -> None:
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(60)


@pytest.fixture(scope="session")
def serve() -> Iterator[Callable[[list[str], Path], dict[str, Any]]]:
    server = Server()
    yield server.run
    server.stop()
