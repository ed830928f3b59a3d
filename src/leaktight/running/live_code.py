"""Live code: what the objects that a result is made with reach in memory and no file tells.

This is typed code, and constants as they are now.

From a class or a function, everything is followed that its code names: helpers, globals, defaults, closures and members
of classes. Of code with a file, only what the file does not say is looked at, so that nothing depends on what else was
called or loaded before.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
from torch import Tensor

from leaktight.core.digest import digest
from leaktight.running.bytecode import Names, digest_bytecode, names_of
from leaktight.running.dependencies import file_of, is_ours, is_own, read_module, title_of_file
from leaktight.running.live_module import defaults_of, functions_in, is_generated, is_typed
from leaktight.running.plain_value import is_changeable, text_of

Place = tuple[str, str]
"""A module and a name in it. For an attribute that is assigned of anything, the module is empty."""
_EMPTY = CellType()


def reach(roots: Iterable[Any]) -> dict[str, str]:
    """Return a digest of all that objects reach and no file tells, by the name of the file, or of what was typed.

    A global that the code assigns while it runs is a memory, not a constant, and does not count. Neither does a list,
    dictionary or set that it may change.

    Args:
        roots: classes and functions.

    Example:
        >>> import math
        >>> reach([math.sqrt, dict])
        {}
    """
    roots = list(roots)
    first = _Walk()
    first.visit_all(roots)
    walk = _Walk(frozenset(first.stored))
    walk.visit_all(roots)
    return {title: digest(*sorted(lines)) for title, lines in sorted(walk.lines.items())}


class _Walk:
    """One way through everything that objects reach.

    Args:
        memories: what the code assigns itself, which is left out; None to find that out first.
    """

    def __init__(self, memories: frozenset[Place] | None = None) -> None:
        self._is_first = memories is None
        self.lines: dict[str, set[str]] = {}
        self.stored: set[Place] = set()
        self._memories = memories or frozenset()
        self._seen: set[tuple[Any, ...]] = set()
        self._kept: list[Any] = []
        self._is_own = functools.cache(is_own)
        self._folders = functools.cache(_folders)

    def visit_all(self, values: Iterable[Any]) -> None:
        for value in values:
            self._visit(value, certain=True)

    def _visit(self, value: Any, certain: bool) -> None:
        """Follow a function, a class, or an object of an own class.

        Args:
            value: anything.
            certain: whether every process has it: what is imported within a function may not be loaded yet.
        """
        if (id(value), certain) in self._seen:
            return
        self._seen.add((id(value), certain))
        # An object that is gone would give its id to another.
        self._kept.append(value)
        if isinstance(value, MethodType):
            self._visit(value.__self__, certain)
            self._visit(value.__func__, certain)
        elif isinstance(value, type):
            for each in value.__mro__:
                if ("class", each, certain) not in self._seen:
                    self._seen.add(("class", each, certain))
                    self._class(each, certain)
        elif isinstance(value, FunctionType):
            self._function(value, certain)
        else:
            for function in functions_in(value):
                self._visit(function, certain)
            if self._is_own(str(type(value).__module__)):
                self._visit(type(value), certain)

    def _function(self, function: FunctionType, certain: bool) -> None:
        self._visit(getattr(function, "__wrapped__", None), certain)
        module, name = str(function.__globals__.get("__name__", "")), function.__code__.co_qualname
        names, cells = names_of(function.__code__), _cells(function)
        if not self._is_own(module) or is_generated(function):
            for value in cells.values():
                self._visit(value, certain)
            return
        if is_typed(module):
            self._add(module, name, f"{name} {digest_bytecode(function.__code__)}")
        for argument, value in defaults_of(function):
            self._value(module, f"{name}({argument})", value, certain)
        for cell, value in cells.items():
            if cell not in names.stored_cells:
                self._value(module, f"{name} around {cell}", value, certain)
        self._names(function, names, module, certain)

    def _names(self, function: FunctionType, names: Names, module: str, certain: bool) -> None:
        """Follow the names that a function uses."""
        self.stored |= {(module, name) for name in names.stored} | {("", name) for name in names.stored_attributes}
        for name in sorted(names.read & function.__globals__.keys()):
            self._global(module, name, function.__globals__[name], names, certain)
        for level, name in sorted(names.imports):
            package = str(function.__globals__.get("__package__") or "").split(".")
            above = ".".join(package[: len(package) - level + 1]) if level else ""
            imported = sys.modules.get(f"{above}.{name}".strip("."))
            if imported is not None:
                self._module(imported, names, certain=False)

    def _global(self, module: str, name: str, value: Any, names: Names, certain: bool) -> None:
        if names.changes_items and is_changeable(value):
            self.stored.add((module, name))
        if (module, name) in self._memories or ("", name) in self._memories:
            return
        if isinstance(value, ModuleType):
            self._module(value, names, certain)
        else:
            self._value(module, name, value, certain)

    def _module(self, module: ModuleType, names: Names, certain: bool) -> None:
        """Follow the attributes of a module that a function names."""
        place = (id(module), names, certain)
        if place in self._seen or not self._is_own(module.__name__):
            return
        self._seen.add(place)
        for name in sorted((names.attributes | names.read) & vars(module).keys()):
            self._global(module.__name__, name, vars(module)[name], names, certain)

    def _class(self, owner: type, certain: bool) -> None:
        module, name = str(owner.__module__), owner.__qualname__
        if not self._is_own(module):
            # Somebody may have put a function of their own into a class of Leaktight.
            for value in vars(owner).values() if is_ours(module) else ():
                for function in functions_in(value):
                    if self._is_own(str(function.__globals__.get("__name__", ""))):
                        self._visit(function, certain)
            return
        if is_typed(module):
            self._add(module, name, f"{name} of {[base.__qualname__ for base in owner.__bases__]}")
        for member, value in sorted(vars(owner).items()):
            if is_typed(module):
                functions = [function.__qualname__ for function in functions_in(value)]
                self._add(module, name, f"{name}.{member} is {functions}")
            if ("", member) not in self._memories and (callable(value) or not member.startswith("__")):
                self._value(module, f"{name}.{member}", value, certain)

    def _value(self, module: str, name: str, value: Any, certain: bool) -> None:
        """Add a plain value that the module's file does not tell; follow any other."""
        if self._is_first and isinstance(value, Tensor | np.ndarray):
            return
        text = text_of(value, self._folders(module))
        if text is None:
            if certain and not is_typed(module) and _is_replaced(module, name, value):
                self._add(
                    module,
                    name,
                    f"{name} is {[digest_bytecode(function.__code__) for function in functions_in(value)]}",
                )
            if (id(value), certain) not in self._seen:
                self._visit(value, certain)
                for number, part in enumerate(_parts(value)):
                    # What is in a list or a dictionary may depend on what was loaded before.
                    self._value(module, f"{name} {number}", part, certain and not is_changeable(value))
            return
        literal = None if is_typed(module) else read_module(module).literals.get(name)
        if text != literal and (literal is not None or certain):
            self._add(module, name, f"{name} {text}")

    def _add(self, module: str, name: str, line: str) -> None:
        title = (
            name.partition(".")[0].partition("(")[0].partition(" ")[0] if is_typed(module) else title_of_file(module)
        )
        self.lines.setdefault(title, set()).add(line)


def _is_replaced(module: str, name: str, value: Any) -> bool:
    """Return whether something else is now under the name of a function or a class in a file."""
    if name not in read_module(module).defined:
        return False
    if isinstance(value, type):
        return (value.__module__, value.__qualname__) != (module, name)
    origins = [
        (function.__globals__.get("__name__"), function.__code__.co_qualname) for function in functions_in(value)
    ]
    return (module, name) not in origins


def _cells(function: FunctionType) -> dict[str, Any]:
    """Return what a function takes from the functions around it."""
    found: dict[str, Any] = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        # It may be empty: a recursive function that is still being made, or a variable that was deleted.
        if cell != _EMPTY:
            found[name] = cell.cell_contents
    return found


def _parts(value: Any) -> Iterator[Any]:
    """Return what is in a collection that is not plain as a whole, and what a function is called with."""
    if isinstance(value, Mapping):
        yield from value.values()
    elif isinstance(value, list | tuple | set | frozenset):
        yield from value
    elif isinstance(value, functools.partial):
        yield from (*value.args, *(part for pair in sorted(value.keywords.items()) for part in pair))


def _folders(module: str) -> tuple[str, ...]:
    """Return the folders in which a module may stand elsewhere on another machine."""
    path = file_of(module)
    above = list(path.absolute().parents)[: module.count(".") + 1] if path is not None else []
    return tuple(folder for folder in {*map(str, above), os.getcwd()} if folder != os.sep)
