from __future__ import annotations

from pathlib import Path

import pytest

from leaktight.running.syntax import ParsedModule, parse_module

PLAIN = """
from torch import nn

LIMIT = 3


class Net(nn.Module):
    def forward(self, x):
        return x * LIMIT
"""


def source(tmp_path: Path, text: str | bytes, name: str = "pkg.sub.own", file: str = "own.py") -> ParsedModule:
    path = tmp_path / file
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return parse_module(path, name)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("\nfrom", '"""What it is for."""\n# and why\nfrom'),
        ("LIMIT = 3\n", 'LIMIT = 3\n"""How far."""\n'),
        ("    def forward", '    """A network."""\n\n    def forward'),
        ("        return", '        """Run it."""\n        return'),
        ("x * LIMIT", "(\n            x\n            * LIMIT  # times\n        )"),
        ("LIMIT = 3", "LIMIT = 0x3"),
    ],
)
def test_what_changes_nothing_is_not_seen(tmp_path: Path, old: str, new: str) -> None:
    assert old in PLAIN
    assert source(tmp_path, PLAIN.replace(old, new)).digest == source(tmp_path, PLAIN).digest


@pytest.mark.parametrize(("old", "new"), [("LIMIT = 3", "LIMIT = 4"), ("x * L", "x + L"), ("nn.Module", "nn.Linear")])
def test_what_changes_something_is_seen(tmp_path: Path, old: str, new: str) -> None:
    assert old in PLAIN
    assert source(tmp_path, PLAIN.replace(old, new)).digest != source(tmp_path, PLAIN).digest


def test_imports_are_found_wherever_they_are(tmp_path: Path) -> None:
    text = """
import a.b as c
from d import e, f as g
from . import near
from ..above import thing

def later():
    import h
    from .i import j
    importlib.import_module("k.l")
    __import__("m")
    importlib.import_module(name)
"""
    found = source(tmp_path, text)
    own = [("pkg.sub", "near"), ("pkg.above", "thing"), ("pkg.sub.i", "j")]
    assert set(found.imports) == {("a.b", ""), ("d", "e"), ("d", "f"), ("h", ""), ("k.l", ""), ("m", ""), *own}
    assert found.names == {"c": ("a.b", ""), "e": ("d", "e"), "g": ("d", "f"), "near": own[0], "thing": own[1]}


def test_relative_imports_of_a_package_start_in_it(tmp_path: Path) -> None:
    assert source(tmp_path, "from .part import x", "pkg", "__init__.py").imports == (("pkg.part", "x"),)


def test_a_package_that_only_hands_on_starts_nothing(tmp_path: Path) -> None:
    text = '"""Parts."""\nfrom pkg.a import A\n__all__ = ["A"]\n\ndef make():\n    return A()\n'
    assert source(tmp_path, text).top_level_digest == ""
    assert (
        source(tmp_path, f"{text}A.scale = 2\n").top_level_digest
        != source(tmp_path, f"{text}A.scale = 3\n").top_level_digest
        != ""
    )


@pytest.mark.parametrize("text", [b"print 'python 2'\n", b"x = '\x00'", b"\xff\xfe", b"x = " + b"-" * 5000 + b"1"])
def test_what_cannot_be_parsed_counts_byte_by_byte(tmp_path: Path, text: bytes) -> None:
    assert source(tmp_path, text).digest != source(tmp_path, text + b"#").digest
    assert source(tmp_path, text).imports == ()


def test_native_code_counts_byte_by_byte(tmp_path: Path) -> None:
    assert source(tmp_path, b"\x7fELF1", file="own.so").digest != source(tmp_path, b"\x7fELF2", file="own.so").digest


def test_literals_are_known_by_the_names_they_are_given(tmp_path: Path) -> None:
    text = """
LIMIT: int = 3
BOTH = ("a", 1)
MADE = float("1")
TWICE = 1
if LIMIT:
    TWICE = 2
for LOOPED in (1, 2):
    pass

class Net:
    slope = 0.5
    def run(self, x, /, by=2, *, LIMIT=4, other=BOTH):
        LIMIT = [LIMIT for LIMIT in x]
"""
    found = source(tmp_path, text).literals
    assert found == {"LIMIT": "3", "BOTH": "('a', 1)", "Net.slope": "0.5", "Net.run(by)": "2", "Net.run(LIMIT)": "4"}


def test_functions_and_classes_are_known_by_their_qualified_names(tmp_path: Path) -> None:
    text = (
        "def f():\n    def g(): pass\nclass A:\n    def h(self): pass\nif f:\n    def i(): pass\ndef j(): pass\ndel j\n"
    )
    found = source(tmp_path, text)
    assert found.defined == {"f", "A", "A.h"}
    assert {"f", "f.<locals>.g", "A.h", "i", "j"} <= found.code.keys()
