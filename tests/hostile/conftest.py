"""One process starts all commands, so that torch is loaded once."""

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


@pytest.fixture(scope="session")
def serve() -> Iterator[Callable[[list[str], Path], dict[str, Any]]]:
    """Return what runs a command in a folder."""
    command = [sys.executable, str(HERE / "served.py")]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment) as server:

        def run(words: list[str], folder: Path) -> dict[str, Any]:
            server.stdin.write(json.dumps([words, str(folder)]) + "\n")
            server.stdin.flush()
            return json.loads(server.stdout.readline())

        yield run
        server.stdin.close()
