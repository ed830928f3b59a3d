"""Every snippet of the README and the documentation runs as printed, or says why it does not.

A page's fenced blocks run in order in one empty folder. `console`: every line after `$ ` is a command; the other lines
are output that must appear in this order, where `...` stands for anything and a number for any number. `python`: one
namespace per page. `toml` must be valid. A block with a `title` is written to the file of that name. A comment before a
block may say `not run: REASON`, `exits with CODE`, or which file of the repository the block shows.
"""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from leaktight.core import registry

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
LONG = {
    "README.md",
    "docs/networks.md",
    "docs/python.md",
    "docs/tables.md",
    "docs/team.md",
    "docs/train.md",
    "docs/terminal.md",
    "docs/tutorials/captured.md",
    "docs/tutorials/gan.md",
    "docs/tutorials/labels.md",
    "docs/tutorials/layers.md",
    "docs/tutorials/network.md",
    "docs/tutorials/search.md",
    "docs/tutorials/strength.md",
    "docs/tutorials/table.md",
    "docs/tutorials/two_machines.md",
}
"""Pages that take more than a few seconds."""
MOST_NOT_RUN = 10
RUN = ("console", "python", "toml")
BLOCK = re.compile(
    r"(?:^<!-- (?P<note>[^\n]*) -->\n)?^```(?P<language>\w*)(?: title=\"(?P<title>[^\"\n]+)\")?\n(?P<text>.*?)^```\n",
    re.MULTILINE | re.DOTALL,
)
NOT_RUN, EXITS = re.compile(r"not run: (.+)"), re.compile(r"exits with (\d+)")
BETWEEN = "---- next command ----"


@dataclasses.dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    language: str
    text: str
    title: str
    note: str
    line: int

    @property
    def not_run(self) -> str:
        """Why it is not run."""
        found = NOT_RUN.fullmatch(self.note)
        return found[1] if found else ""

    @property
    def shows(self) -> Path | None:
        """The file of the repository that it shows."""
        return ROOT / self.note if re.fullmatch(r"[\w/.-]+\.\w+", self.note) else None


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [
        Block(
            found["language"],
            found["text"],
            found["title"] or "",
            found["note"] or "",
            text.count("\n", 0, found.start("text")),
        )
        for found in BLOCK.finditer(text)
    ]


def run_console(block: Block, folder: Path) -> None:
    """Run the commands of a block in one shell, and compare what they print with what is shown."""
    commands: list[tuple[str, list[str]]] = []
    going_on = False
    for line in block.text.splitlines():
        if line.startswith("$ "):
            commands.append((line[2:], []))
        elif going_on:
            commands[-1] = f"{commands[-1][0]}\n{line}", []
        elif commands:
            commands[-1][1].append(line)
        going_on = line.endswith("\\")
    script = f"\necho '{BETWEEN}'\n".join(command for command, _ in commands)
    places = [str(Path(sys.executable).parent), os.environ["PATH"]]
    environment = os.environ | {"PATH": os.pathsep.join(places), "FLWR_HOME": str(folder / "flwr-home")}
    done = subprocess.run(
        ["bash", "-e", "-c", script],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    expected = EXITS.fullmatch(block.note)
    assert done.returncode == (int(expected[1]) if expected else 0), f"{script}\n\n{done.stdout}"
    for (command, shown), printed in zip(commands, done.stdout.split(f"{BETWEEN}\n"), strict=False):
        compare(command, shown, printed)


def compare(command: str, shown: list[str], printed: str) -> None:
    """Find what a page shows of a command's output, line by line in this order, wherever the terminal broke lines."""
    whole, place = " ".join(printed.split()), 0
    for line in shown:
        if not line.strip():
            continue
        found = re.compile(pattern_of(line)).search(whole, place)
        assert found, f"`{command}` does not print, in this order:\n  {line}\nbut\n{printed}"
        place = found.end()


def pattern_of(line: str) -> str:
    """Return a pattern of a line: `...` stands for anything, also for nothing, and a number for any number."""
    anything = r"\s*\.\.\.\s*"
    parts = [re.escape(" ".join(part.split())).replace(r"\ ", r"\s+") for part in re.split(anything, line)]
    return ".*?".join(re.sub(r"\d+(?:\\\.\d+)?", r"\\d+(?:\\.\\d+)?", part) for part in parts)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder; what a page's Python imports from there, or registers, is gone afterwards."""
    registry.load()
    modules, families = set(sys.modules), {family: dict(kinds) for family, kinds in registry._classes.items()}
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in set(sys.modules) - modules:
        file = str(getattr(sys.modules[name], "__file__", "") or "")
        if file.startswith(str(tmp_path)) or name.startswith("leaktight.testing.examples."):
            del sys.modules[name]
    registry._classes.clear()
    registry._classes.update(families)


def page_of(page: Path) -> Any:
    marks = [pytest.mark.long, pytest.mark.timeout(1200)] if name_of(page) in LONG else []
    return pytest.param(page, id=name_of(page), marks=marks)


@pytest.mark.parametrize("page", [page_of(page) for page in PAGES if any(b.language in RUN for b in blocks_of(page))])
def test_the_snippets_of_a_page_run_as_printed(page: Path, folder: Path) -> None:
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks_of(page):
        if block.not_run:
            continue
        if block.shows:
            assert block.text == block.shows.read_text(encoding="utf-8"), f"{block.note} has changed"
            continue
        if block.language == "toml":
            tomllib.loads(block.text)
        if block.title:
            (folder / block.title).parent.mkdir(parents=True, exist_ok=True)
            (folder / block.title).write_text(block.text, encoding="utf-8")
        elif block.language == "console":
            run_console(block, folder)
        elif block.language == "python":
            place = "\n" * block.line + block.text
            exec(compile(place, str(page), "exec", dont_inherit=True), namespace)  # noqa: S102


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_fence_is_found(page: Path) -> None:
    fences = re.findall(r"^\s*```", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(fences) == 2 * len(blocks_of(page)), "a block is indented, is not closed, or begins in another form"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_no_command_stands_where_nothing_runs_it(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    rest = BLOCK.sub(lambda found: "" if found["language"] in RUN else found["text"], text)
    assert re.findall(r"^\s*(?:\$ .*|leaktight [a-z].*)", rest, re.MULTILINE) == [], "write a block of kind `console`"


def test_few_blocks_are_not_run_and_each_says_why() -> None:
    left_out = [
        f"{name_of(page)}: {block.not_run}"
        for page in PAGES
        for block in blocks_of(page)
        if block.language in RUN and block.not_run
    ]
    assert len(left_out) <= MOST_NOT_RUN, "\n".join(left_out)


def test_the_pages_that_take_long_are_there() -> None:
    assert set(map(name_of, PAGES)) >= LONG


def test_the_readme_fits_on_three_screens_and_its_links_lead_somewhere() -> None:
    for name in ("README.md", "CONTRIBUTING.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        links = [link for link in re.findall(r"\]\(([^)#]+)[^)]*\)", text) if "://" not in link]
        assert [link for link in links if not (ROOT / link).exists()] == []
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 120


def test_output_is_compared_up_to_numbers_and_line_breaks() -> None:
    compare(
        "", ["Verdict: ...", "- no defence: ... 7.5 of 8 images"], "Verdict:\n- no defence: leaks.\n  8 of 8 images"
    )
    with pytest.raises(AssertionError, match="does not print"):
        compare("", ["b", "a"], "a b")


def test_a_command_that_fails_fails_its_page(tmp_path: Path) -> None:
    block = Block("console", "$ false\n$ true\n", "", "", 1)
    with pytest.raises(AssertionError, match="false"):
        run_console(block, tmp_path)
    run_console(
        dataclasses.replace(block, text="$ echo one \\\n  two\none two\n$ exit 3\n", note="exits with 3"), tmp_path
    )
