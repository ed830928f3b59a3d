from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from leaktight.running.dependencies import digest_loaded, read_module
from leaktight.running.live_module import deviations
from leaktight.running.syntax import parse_module

TEXT = '''
import contextlib
import dataclasses
import enum
import functools
from typing import NamedTuple

LIMIT = 3
CALLS = 0
KEPT = {}


class Sort(enum.Enum):
    ONE = "one"


@dataclasses.dataclass(frozen=True)
class Size:
    wide: int = 3

    @property
    def twice(self):
        return 2 * self.wide

    @functools.cached_property
    def thrice(self):
        return [3 * wide for wide in {self.wide}]

    @staticmethod
    def least(of=1):
        """Say it."""
        return of


class Pair(NamedTuple):
    one: int = 1

    def both(self):
        return self.one, LIMIT


@contextlib.contextmanager
def around():
    yield Size


@functools.cache
def count(by=1):
    global CALLS
    CALLS += by
    return lambda: CALLS
'''
Load = Callable[[str], ModuleType]


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Load:
    """Return how a file is loaded as a part of Leaktight."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def module(text: str) -> ModuleType:
        (tmp_path / "part.py").write_text(text)
        spec: Any = importlib.util.spec_from_file_location("leaktight.part", tmp_path / "part.py")
        made = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, "leaktight.part", made)
        spec.loader.exec_module(made)
        return made

    return module


def test_a_module_that_is_as_its_file_says_does_not_deviate(load: Load, tmp_path: Path) -> None:
    module = load(TEXT)
    vars(module)["count"]()
    vars(module)["KEPT"][1] = 2
    assert deviations(module, parse_module(tmp_path / "part.py", "leaktight.part"), constants=True) == []


@pytest.mark.parametrize("name", sorted(name for name in sys.modules if name.startswith("leaktight.")))
def test_no_module_of_leaktight_deviates(name: str) -> None:
    assert deviations(sys.modules[name], read_module(name), constants=True) == []


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("LIMIT = 3", "LIMIT = 4", "LIMIT"),
        ('"one"', '"two"', "Sort.ONE"),
        ("wide: int = 3", "wide: int = 4", "Size.wide"),
        ("2 * self", "3 * self", "Size.twice"),
        ("3 * wide", "4 * wide", "Size.thrice.<locals>.<listcomp>"),
        ("of=1", "of=2", "Size.least(of)"),
        ("return of", "return -of", "Size.least"),
        ("self.one, L", "self.two, L", "Pair.both"),
        ("yield Size", "yield Pair", "around"),
        ("CALLS += by", "CALLS -= by", "count"),
        ("class Pair", "def more():\n    return 1\n\n\nclass Pair", "more"),
        ("    def both", "    def each(self):\n        return self\n\n    def both", "Pair.each"),
    ],
)
def test_what_was_edited_after_it_was_loaded_shows(load: Load, tmp_path: Path, old: str, new: str, named: str) -> None:
    assert old in TEXT
    for first, second in ((TEXT, TEXT.replace(old, new, 1)), (TEXT.replace(old, new, 1), TEXT)):
        module = load(first)
        (tmp_path / "part.py").write_text(second)
        stale = digest_loaded("leaktight.part")
        lines = deviations(module, read_module("leaktight.part"), constants=True)
        load(second)
        assert digest_loaded("leaktight.part") != stale
    # `thrice` holds the code of what is inside it.
    assert any(line.startswith(named.partition(".<")[0]) for line in lines)


@pytest.mark.parametrize(
    ("old", "new"), [("Say it.", "Say so."), ('        """Say it."""\n', ""), ("\nLIMIT", "# Far.\n\nLIMIT")]
)
def test_a_sentence_that_was_edited_after_it_was_loaded_does_not_show(
    load: Load, tmp_path: Path, old: str, new: str
) -> None:
    load(TEXT)
    (tmp_path / "part.py").write_text(TEXT.replace(old, new, 1))
    stale = digest_loaded("leaktight.part")
    load(TEXT)
    assert digest_loaded("leaktight.part") == stale


def test_what_another_loader_rewrites_is_left_to_its_file(load: Load) -> None:
    module = load(TEXT)
    vars(module)["__loader__"] = object()
    vars(module)["around"] = test_no_module_of_leaktight_deviates
    assert deviations(module, read_module("leaktight.part"), constants=True) == []
