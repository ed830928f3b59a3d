"""The two scripts that are the whole developer interface do what they say."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def ci(folder: Path, variable: str | None, *, installs: bool) -> subprocess.CompletedProcess[str]:
    """Run `.ci/run` on a machine without Chromium, where `make` only says what it was asked for."""
    for name in ("bash", "dirname"):
        (folder / name).symlink_to(str(shutil.which(name)))
    for name, line in (("make", 'echo "made $1"'), ("apt-get", f"exit {0 if installs else 100}")):
        (folder / name).write_text(f"#!/bin/bash\n{line}\n")
        (folder / name).chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if name != "CI"} | {"PATH": str(folder)}
    environment |= {} if variable is None else {"CI": variable}
    command = [str(shutil.which("bash")), str(ROOT / ".ci" / "run")]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("installs", [True, False])
@pytest.mark.parametrize("variable", ["true", None])
def test_ci_fails_if_it_cannot_install_a_browser(tmp_path: Path, variable: str | None, installs: bool) -> None:
    done = ci(tmp_path, variable, installs=installs)
    fails = variable == "true" and not installs
    assert (done.returncode != 0, done.stdout) == (
        fails,
        "" if fails else "made check\nmade test\nmade test-long\nmade fuzz\n",
    )
    assert ("Chromium cannot be installed" in done.stderr) is not installs


def test_everything_that_make_bench_runs_is_a_benchmark() -> None:
    recipe = re.search(r"^bench:.*\n\t.*?(benchmarks/\S+\.py);", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert recipe
    files = list(ROOT.glob(recipe[1]))
    assert files
    for file in files:
        assert '__name__ == "__main__"' in file.read_text(), f"{file.name} does nothing when it is run"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_program_that_tests_signal_listens_even_if_the_suite_does_not(
    launch: Callable[..., subprocess.Popen[str]], number: signal.Signals
) -> None:
    code = "import time; print(flush=True); time.sleep(100)"
    before = signal.signal(number, signal.SIG_IGN)
    try:
        program = launch([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert signal.getsignal(number) is signal.SIG_IGN
    finally:
        signal.signal(number, before)
    assert program.stdout.readline() == "\n"
    program.send_signal(number)
    program.communicate(timeout=60)
    assert program.returncode == -number


def test_no_test_signals_a_program_that_may_not_listen() -> None:
    """A test that asks a program to end starts it by `launch`."""
    asks = re.compile(r"(send_signal|kill|killpg)\(.*SIG(INT|TERM)\b|\.terminate\(\)")
    for file in (ROOT / "tests").rglob("test_*.py"):
        text = file.read_text()
        assert not (asks.search(text) and "subprocess.Popen(" in text), (
            f"{file.relative_to(ROOT)} must start programs by `launch`"
        )
