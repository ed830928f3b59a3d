"""From the pages alone: a package outside this one, made of what they print, is installed, listed and audited."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import leaktight

PAGES = Path(__file__).resolve().parents[2] / "docs" / "extend"
SHOWN = re.compile(r"(?:<!-- (\S+) -->\n```\w+\n|```\w+ title=\"(\S+)\"\n)(.*?)```\n", re.DOTALL)
PARTS = {"defence": "damping", "attack": "mean_image", "metric": "edge_error", "leak_kind": "outlines"}
Call = Callable[..., str]


def blocks(page: str) -> dict[str, str]:
    """Return what a page prints as the content of a file, by the file's name; kinds are named as somebody else would."""
    found = SHOWN.findall((PAGES / f"{page}.md").read_text())
    return {shown or title: text.replace("example_", "mine_") for shown, title, text in found}


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with exactly the files of the pages."""
    folder = tmp_path_factory.mktemp("pages") / "my-parts"
    (folder / "my_parts").mkdir(parents=True)
    for name, text in blocks("package").items():
        (folder / name).write_text(text)
    for page, file in PARTS.items():
        [code] = blocks(page).values()
        (folder / "my_parts" / f"{file}.py").write_text(code)
    return folder


@pytest.fixture(scope="module")
def call(package: Path) -> Call:
    """Install the package beside Leaktight and return what runs a module of Python in its folder."""
    pytest.importorskip("pip")
    site = package.parent / "site"
    # Without plugins of this test session, and with these sources.
    here = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(leaktight.__file__).parents[1]), str(site)])}

    def run(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", *words], cwd=package, env=here, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    run("pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--target", str(site), ".")
    return run


def test_the_page_shows_every_file_of_the_package(package: Path) -> None:
    tree = re.search(r"```text\n(.*?)```", (PAGES / "package.md").read_text(), re.DOTALL)
    assert tree is not None
    printed = {line.split()[0].rstrip("/") for line in tree[1].splitlines()[1:]}
    assert printed == {path.name for path in package.rglob("*") if "__pycache__" not in str(path)} - {"build"}


@pytest.mark.long
def test_its_parts_are_listed_and_audited_like_ours(package: Path, call: Call) -> None:
    listed = call("leaktight.cli", "list")
    for kind in ("mine_damping", "mine_mean_image", "mine_edge_error", "mine_outlines"):
        assert re.search(rf"^  {kind} ", listed, re.MULTILINE), kind

    said = call("leaktight.cli", "audit", "plan.toml", "--workers", "1", "--out", "outlines")
    assert "Outlines come back with an edge error of" in said
    summary = json.loads((package / "outlines" / "summary.json").read_text())
    verdicts = summary["verdicts"]
    assert {verdict["kind"] for verdict in verdicts} == {"mine_outlines"}
    assert {verdict["reading"] for verdict in verdicts} == {"mine_edge_error"}
    assert [verdict["defence"]["kind"] for verdict in verdicts] == ["none", "mine_damping", "mine_damping"]
    assert [verdict["verdict"] for verdict in verdicts][:2] == ["leaks", "leaks"]
    assert {attack["name"] for verdict in verdicts for attack in verdict["attacks"]} >= {"mine_mean_image"}
    flags = {flag["name"]: flag["sentence"] for flag in summary["flags"]}
    assert "The noise of mine damping has no epsilon" in flags["noise_is_not_privacy"]
