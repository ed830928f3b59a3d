from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

import leaktight as package
from leaktight.cli import main as module
from leaktight.core.errors import LeaktightError

COMMANDS = (
    "audit",
    "attack-more",
    "report",
    "gate",
    "compare",
    "layers",
    "search",
    "reproduce",
    "export",
    "init",
    "list",
    "explain",
    "train",
    "split",
    "certificates",
)


def python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


def test_neither_the_package_nor_any_help_imports_torch() -> None:
    code = f"""
import sys, leaktight
assert "torch" not in sys.modules
from leaktight.cli.main import main
for words in (["--help"], ["--version"], *([name, "--help"] for name in {COMMANDS!r})):
    assert main(words) == 0
heavy = {{"torch", "numpy", "scipy", "sklearn", "fpdf", "flwr", "ray", "grpc", "rich.progress"}} & set(sys.modules)
assert not heavy, heavy
"""
    assert "leaktight audit" in python(code)


@pytest.mark.parametrize("words", [(), *((name,) for name in COMMANDS)])
def test_every_help_has_examples(leaktight: Callable[..., Any], words: tuple[str, ...]) -> None:
    said = leaktight(*words, "--help")
    assert said.code == 0
    assert "Example" in said.out
    assert f"\n    leaktight {' '.join(words)}".rstrip() in said.out
    assert leaktight(*words, "-h").out == said.out


def test_the_examples_of_the_help_can_be_parsed(leaktight: Callable[..., Any]) -> None:
    for words in ((), *((name,) for name in COMMANDS)):
        for line in leaktight(*words, "--help").out.splitlines():
            if line.startswith("    leaktight "):
                command = line.split("  is ")[0].split("&&")[0].split("|")[0].split()[1:3]
                assert command[0] in COMMANDS


def test_no_help_shows_escaped_markup(leaktight: Callable[..., Any]) -> None:
    parties = [("split", "label-party"), ("split", "feature-party")]
    said = [leaktight(*words, "--help").out for words in ((), *((name,) for name in COMMANDS), *parties)]
    assert not any("\\" in text for text in said)
    assert "[default: local]" in " ".join(leaktight("audit", "--help").out.split())


def test_what_commands_do_is_said_whole(leaktight: Callable[..., Any]) -> None:
    commands = leaktight("--help").out.partition("Commands:")[2].partition("Examples:")[0]
    assert all(f"\n  {name} " in commands for name in COMMANDS)
    assert "..." not in commands


def test_an_error_is_not_broken_within_a_word_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.sys, "stderr", SimpleNamespace(isatty=lambda: True))
    monkeypatch.setenv("COLUMNS", "20")
    assert module._folded("Error: It is so, and not else.\n- one") == "Error: It is so, and\n  not else.\n- one"
    monkeypatch.setattr(module.sys, "stderr", SimpleNamespace(isatty=lambda: False))
    assert module._folded("Error: It is so, and not else.") == "Error: It is so, and not else."


def test_no_words_show_the_help(leaktight: Callable[..., Any]) -> None:
    said = leaktight()
    assert "Commands:" in said.out + said.err


def test_version(leaktight: Callable[..., Any]) -> None:
    assert leaktight("--version").out == f"leaktight {package.__version__}\n"


def test_an_error_is_its_text_and_nothing_else(leaktight: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(**_: object) -> None:
        raise LeaktightError("It is [bold]so[/bold]. Do this.")

    monkeypatch.setattr(module, "app", fail)
    said = leaktight("anything")
    assert (said.code, said.out, said.err) == (2, "", "Error: It is [bold]so[/bold]. Do this.\n")


def test_a_fault_of_the_program_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(**_: object) -> None:
        raise TypeError

    monkeypatch.setattr(module, "app", fail)
    with pytest.raises(TypeError):
        module.main(["list"])
