from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest

from leaktight.cli.main import main

PLAN = """
title = "Small"
[scenario]
rounds = 1
participants = 2
data = "digits"
model = "mlp"
[[defences]]
kind = "gaussian_noise"
std = 0.5
[[attacks]]
kind = "analytic"
[grid]
victims = 3
"""


@dataclasses.dataclass(frozen=True)
class Said:
    """What a command left behind."""

    code: int
    out: str
    err: str


@pytest.fixture
def leaktight(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[..., Said]:
    """Run a command in this process, in an empty folder; worker processes have tests of their own."""
    monkeypatch.chdir(tmp_path)

    def call(*words: str) -> Said:
        capsys.readouterr()
        code = main(list(words))
        said = capsys.readouterr()
        return Said(code, said.out, said.err)

    return call


@pytest.fixture(scope="session")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a small audit that was run through the command line."""
    folder = tmp_path_factory.mktemp("cli")
    (folder / "small.toml").write_text(PLAN)
    assert main(["audit", str(folder / "small.toml"), "--workers", "1", "--out", str(folder / "out")]) == 0
    return folder / "out"
