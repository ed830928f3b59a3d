"""Memory: what is free, and how many workers fit."""

from __future__ import annotations

from pathlib import Path

import pytest

from leaktight.core import memory
from leaktight.core.memory import WORKER_MEMORY, free_memory, workers_that_fit


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, file in (("_MEMINFO", "meminfo"), ("_LIMIT", "max"), ("_HELD", "current")):
        monkeypatch.setattr(memory, name, tmp_path / file)
    monkeypatch.setattr(memory, "cores", lambda: 8)
    return tmp_path


def test_nobody_knows(machine: Path) -> None:
    assert free_memory() is None
    assert workers_that_fit() == 8


def test_a_machine_and_a_container_around_us(machine: Path) -> None:
    (machine / "meminfo").write_text("MemTotal: 9000000 kB\nMemAvailable:  8000000 kB\n")
    assert free_memory() == 8_000_000 * 1024
    (machine / "max").write_text("max\n")
    (machine / "current").write_text("5\n")
    assert free_memory() == 8_000_000 * 1024
    (machine / "max").write_text(f"{3 * WORKER_MEMORY + 5}\n")
    assert free_memory() == 3 * WORKER_MEMORY
    assert workers_that_fit() == 3
    (machine / "max").write_text("1000\n")
    assert workers_that_fit() == 1
