"""Bytecode: what compiled code does and which names it uses.

Where the code stands and what it says about itself are kept apart from that.
"""

from __future__ import annotations

import dataclasses
import dis
import inspect
from bisect import bisect_left
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType
from typing import Any

from leaktight.core.digest import digest

_IDLE = frozenset({"NOP", "CACHE", "EXTENDED_ARG", "RESUME"})
_DESCRIPTION = frozenset({"__doc__", "__firstlineno__", "__static_attributes__"})
"""What the body of a class says about itself."""
_KIND = (
    inspect.CO_VARARGS
    | inspect.CO_VARKEYWORDS
    | inspect.CO_GENERATOR
    | inspect.CO_COROUTINE
    | inspect.CO_ASYNC_GENERATOR
)
_READS = frozenset({"LOAD_GLOBAL", "LOAD_NAME"})
_STORES = frozenset({"STORE_GLOBAL", "DELETE_GLOBAL"})
_ATTRIBUTES = frozenset({"LOAD_ATTR", "LOAD_METHOD", "IMPORT_FROM"})
_ITEM_STORES = frozenset({"STORE_SUBSCR", "DELETE_SUBSCR", "STORE_SLICE"})
_CHANGES = frozenset(
    {"add", "append", "clear", "discard", "extend", "insert", "pop", "popitem", "remove", "setdefault", "update"}
)
"""Methods that change what they are called on."""


@dataclasses.dataclass(frozen=True)
class Names:
    """The names that code uses, in the functions inside it too.

    Args:
        read: globals that it reads.
        stored: globals that it assigns.
        attributes: attributes that it reads of anything, and names that it imports from modules.
        stored_attributes: attributes that it assigns of anything but `self`.
        stored_cells: variables of the functions around it that it assigns.
        imports: modules that it imports, each with how many packages up a relative name starts.
        changes_items: whether it may change a list, dictionary or set.
    """

    read: frozenset[str]
    stored: frozenset[str]
    attributes: frozenset[str]
    stored_attributes: frozenset[str]
    stored_cells: frozenset[str]
    imports: frozenset[tuple[int, str]]
    changes_items: bool


@lru_cache(maxsize=4096)
def names_of(code: CodeType) -> Names:
    """Return the names that code uses.

    Example:
        >>> names = names_of(compile("print(math.pi)", "", "exec"))
        >>> sorted(names.read), sorted(names.attributes)
        (['math', 'print'], ['pi'])
    """
    steps = [step for each in all_code(code) for step in _steps(each)]
    pairs = list(zip([None, *steps], steps, strict=False))
    attributes = _arguments(steps, _ATTRIBUTES)
    return Names(
        read=_arguments(steps, _READS),
        stored=_arguments(steps, _STORES),
        attributes=attributes,
        stored_attributes=frozenset(
            str(s.argval) for before, s in pairs if s.opname == "STORE_ATTR" and not _is_self(before)
        ),
        stored_cells=_arguments(steps, frozenset({"STORE_DEREF"})),
        imports=frozenset(_imports(steps)),
        changes_items=any(step.opname in _ITEM_STORES for step in steps) or not attributes.isdisjoint(_CHANGES),
    )


def all_code(code: CodeType) -> Iterator[CodeType]:
    """Return code and all the code inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from all_code(constant)


@lru_cache(maxsize=4096)
def digest_bytecode(code: CodeType) -> str:
    r"""Return a digest of what code does: lines, file names, comments and docstrings leave no trace in it.

    Example:
        >>> one = compile("def f(x):\n    return x + 1", "one.py", "exec")
        >>> two = compile("# Why.\ndef f(x):\n    'What.'\n    return x + 1", "two.py", "exec")
        >>> digest_bytecode(one) == digest_bytecode(two)
        True
    """
    count = code.co_argcount + code.co_kwonlyargcount + sum(bool(code.co_flags & flag) for flag in (4, 8))
    kind = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags & _KIND)
    return digest(repr((*kind, code.co_varnames[:count], code.co_freevars)), *_instructions(code))


def _instructions(code: CodeType) -> Iterator[str]:
    """Return each instruction; a jump goes to an instruction's number, which no docstring moves."""
    steps = _without_description(_steps(code))
    offsets = [step.offset for step in steps]
    for step in steps:
        is_jump = step.opcode in dis.hasjrel or step.opcode in dis.hasjabs
        yield f"{step.opname} {bisect_left(offsets, step.argval) if is_jump else _argument(step.argval)}"
    for entry in getattr(dis.Bytecode(code), "exception_entries", ()):
        yield repr(
            [
                *(bisect_left(offsets, place) for place in (entry.start, entry.end, entry.target)),
                entry.depth,
                entry.lasti,
            ]
        )


def _steps(code: CodeType) -> list[dis.Instruction]:
    return [step for step in dis.get_instructions(code) if step.opname not in _IDLE]


def _without_description(steps: list[dis.Instruction]) -> list[dis.Instruction]:
    """Return instructions without those that load and store what a class says about itself."""
    stores = {n for n, step in enumerate(steps) if step.opname == "STORE_NAME" and step.argval in _DESCRIPTION}
    return [step for n, step in enumerate(steps) if n not in stores and n + 1 not in stores]


def _argument(value: Any) -> str:
    if isinstance(value, CodeType):
        return digest_bytecode(value)
    if isinstance(value, frozenset):
        return f"{{{', '.join(sorted(map(_argument, value)))}}}"
    return f"({', '.join(map(_argument, value))})" if isinstance(value, tuple) else repr(value)


def _arguments(steps: list[dis.Instruction], operations: frozenset[str]) -> frozenset[str]:
    return frozenset(str(step.argval) for step in steps if step.opname in operations)


def _is_self(step: dis.Instruction | None) -> bool:
    # Newer versions of Python load two variables at once.
    return step is not None and (
        step.argval == "self" or (isinstance(step.argval, tuple) and step.argval[-1:] == ("self",))
    )


def _imports(steps: list[dis.Instruction]) -> Iterator[tuple[int, str]]:
    for number, step in enumerate(steps):
        if step.opname == "IMPORT_NAME":
            level = steps[number - 2].argval if number > 1 else 0
            yield level if isinstance(level, int) else 0, str(step.argval)
