from __future__ import annotations

from types import CodeType

import pytest

from leaktight.running.bytecode import digest_bytecode, names_of

TEXT = """
import os

class Net:
    '''A network.'''
    slope = 1

    def run(self, x, *, by=2):
        '''Run it.'''
        for part in x:
            if part in {"a", "b"}:
                return None
        try:
            first(x)
            second(x)
        except ValueError:
            return [y for y in x]
        return by
"""


def code(text: str, file: str = "net.py") -> CodeType:
    return compile(text, file, "exec", dont_inherit=True)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("\nimport", "\n\n# why\n\nimport"),
        ("'''A network.'''\n", "'''Another.'''\n\n"),
        ("    '''A network.'''\n", ""),
        ("        '''Run it.'''\n", ""),
        ("'''Run it.'''", "'''Run it.\n\n        Twice.\n        '''"),
        ("            first(x)\n", "            'Now.'\n            first(x)\n"),
    ],
)
def test_what_changes_nothing_is_not_seen(old: str, new: str) -> None:
    assert old in TEXT
    assert digest_bytecode(code(TEXT.replace(old, new), "moved.py")) == digest_bytecode(code(TEXT))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("slope = 1", "slope = 2"),
        ("slope = 1", "slope = True"),
        ("by=2", "by=3"),
        ('"b"}', '"c"}'),
        ("*, by", "by"),
        ("first(x)\n            second(x)", "second(x)\n            first(x)"),
        ("        try:\n            first(x)\n", "        first(x)\n        try:\n"),
        ("[y for y in x]", "[x for y in x]"),
        ("return None", "break"),
    ],
)
def test_what_changes_something_is_seen(old: str, new: str) -> None:
    assert old in TEXT
    assert digest_bytecode(code(TEXT.replace(old, new))) != digest_bytecode(code(TEXT))


def test_the_names_that_code_uses() -> None:
    text = """
def f(self, other):
    global COUNT
    from ..near import thing
    import far.away
    COUNT += 1
    self.own = other.inner = helpers.scale(LIMIT)
    def g():
        return MORE
"""
    names = names_of(next(each for each in code(text).co_consts if isinstance(each, CodeType)))
    assert names.read == {"COUNT", "helpers", "LIMIT", "MORE"}
    assert names.stored == {"COUNT"}
    assert names.attributes >= {"scale", "thing"}
    assert names.stored_attributes == {"inner"}
    assert names.imports == {(2, "near"), (0, "far.away")}
    assert not names.changes_items


@pytest.mark.parametrize("text", ["SEEN[1] = 2", "del SEEN[1]", "SEEN.append(1)", "SEEN.setdefault(1, 2)"])
def test_code_that_may_change_a_collection_is_known(text: str) -> None:
    assert names_of(code(text)).changes_items
    assert not names_of(code("SEEN[1], SEEN.get(1)")).changes_items


def test_a_variable_of_the_function_around_that_is_assigned_is_known() -> None:
    def outer() -> object:
        count = 0

        def inner() -> int:
            nonlocal count
            count += 1
            return count

        return inner

    assert names_of(outer().__code__).stored_cells == {"count"}  # type: ignore[attr-defined]
