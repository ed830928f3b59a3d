"""The two scripts that are the whole developer interface do what they say."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterable
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

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
        "" if fails else "made demo\nmade check\nmade test\nmade docs\nmade test-long\nmade fuzz\n",
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


def closure_of(names: Iterable[str]) -> set[str]:
    """Return packages with everything that they need here, by their normalised names."""
    needed: set[str] = set()
    waiting = list(names)
    while waiting:
        requirement = Requirement(waiting.pop())
        name = canonicalize_name(requirement.name)
        if name not in needed and (requirement.marker is None or requirement.marker.evaluate({"extra": ""})):
            needed.add(name)
            waiting += distribution(name).requires or []
    return needed


def pins_of(name: str) -> dict[str, str]:
    lines = [line for line in (ROOT / name).read_text().splitlines() if not line.startswith(("#", "--"))]
    return {canonicalize_name(package): version for package, version in (line.split("==") for line in lines)}


def test_the_demo_installs_what_leaktight_needs_and_nothing_else() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    needed = closure_of([*project["project"]["dependencies"], *project["build-system"]["requires"]])
    assert set(pins_of("requirements.lock")) == needed


def test_the_locks_are_sorted_and_do_not_overlap() -> None:
    core, more = pins_of("requirements.lock"), pins_of("requirements-dev.lock")
    assert not core.keys() & more.keys()
    for name in ("requirements.lock", "requirements-dev.lock"):
        pins = [line for line in (ROOT / name).read_text().splitlines() if "==" in line]
        assert pins == sorted(pins, key=str.lower), f"{name} is not sorted"


def test_everything_that_the_project_names_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = [Requirement(text) for extra in project["optional-dependencies"].values() for text in extra]
    pinned = pins_of("requirements.lock") | pins_of("requirements-dev.lock")
    assert {canonicalize_name(one.name) for one in named} <= pinned.keys()


def test_make_demo_says_how_to_go_on_as_the_readme_does() -> None:
    text = (ROOT / "Makefile").read_text()
    commands = re.findall(r"^\$ (\. \S+|leaktight .+?)(?:  +#.*)?$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert commands
    assert [command for command in commands if command not in text] == []
    said = text.partition("define NEXT")[2].partition("endef")[0]
    assert max(map(len, said.splitlines())) <= 80
