"""Live modules: where a loaded module does something else than its file says.

That is because one of them was changed since.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Iterator, Mapping
from importlib.machinery import SourceFileLoader
from types import FunctionType, ModuleType
from typing import Any

from leaktight.running.bytecode import digest_bytecode, names_of
from leaktight.running.plain_value import is_changeable, text_of
from leaktight.running.syntax import ParsedModule


def deviations(module: ModuleType, parsed: ParsedModule, constants: bool = False) -> list[str]:
    """Return each function of a loaded module that is not in its file, and each of the file that is not loaded.

    A module that is as its file says has none, whatever was called of it before. Lines, comments and docstrings do not
    count.

    Args:
        module: what is loaded.
        parsed: what its file says.
        constants: whether numbers and texts at the top level and in classes are compared too.
    """
    if not is_plainly_loaded(module):
        return []
    found = dict(_members(vars(module), module.__name__))
    missing = [f"{name} is missing" for name in parsed.defined if name not in found]
    functions = {id(function): function for member in found.values() for function in functions_in(member)}
    changed = [line for function in functions.values() for line in _function(function, vars(module), parsed)]
    return sorted({*missing, *changed, *(_constants(found, functions, parsed) if constants else ())})


def is_plainly_loaded(module: ModuleType) -> bool:
    """Return whether a module was compiled from its file and nothing else.

    A tool that rewrites code while it loads has its own loader.
    """
    return type(getattr(module, "__loader__", None)) is SourceFileLoader


def is_in_file(function: FunctionType, parsed: ParsedModule) -> bool:
    """Return whether a file has just this code under the same name."""
    code = function.__code__
    expected = parsed.code.get(code.co_qualname, ())
    return code in expected or digest_bytecode(code) in map(digest_bytecode, expected)


def is_generated(function: FunctionType) -> bool:
    """Return whether code was made by other code, such as the methods of a dataclass."""
    name = str(function.__globals__.get("__name__", ""))
    return name not in sys.modules or (function.__code__.co_filename.startswith("<") and not is_typed(name))


def is_typed(name: str) -> bool:
    """Return whether a module has no file because its code was typed or came through a pipe.

    It may have been typed into a terminal or a notebook.
    """
    module = sys.modules.get(name)
    if module is None:
        return False
    file = getattr(module, "__file__", None) or ""
    return getattr(module, "__spec__", None) is None and (not file or (file.startswith("<") and file.endswith(">")))


def defaults_of(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """Return the arguments of a function that have a default, with it."""
    code, values = function.__code__, function.__defaults__ or ()
    yield from zip(code.co_varnames[code.co_argcount - len(values) : code.co_argcount], values, strict=True)
    yield from sorted((function.__kwdefaults__ or {}).items())


def functions_in(member: Any) -> Iterator[FunctionType]:
    """Return the functions behind a member of a module or a class.

    The member may be a property, a method, or anything that wraps a function.
    """
    if isinstance(member, FunctionType):
        yield member
    if isinstance(member, property):
        inner: list[Any] = [member.fget, member.fset, member.fdel]
    elif isinstance(member, staticmethod | classmethod):
        inner = [member.__func__]
    elif isinstance(member, functools.partial | functools.cached_property):
        inner = [member.func]
    else:
        # Statically: an object may answer to any name, or raise.
        is_simple = type(member).__module__ == "builtins" and not isinstance(member, FunctionType)
        inner = [] if is_simple else [inspect.getattr_static(member, "__wrapped__", None)]
    for part in inner:
        if part is not None and part is not member:
            yield from functions_in(part)


def _members(namespace: Mapping[str, Any], module: str, above: str = "") -> Iterator[tuple[str, Any]]:
    """Return everything at the top level of a module and in the classes that it defines, by its qualified name."""
    for name, value in list(namespace.items()):
        yield above + name, value
        if isinstance(value, type) and value.__module__ == module and value.__qualname__ == above + name:
            yield from _members(vars(value), module, f"{above}{name}.")


def _function(function: FunctionType, namespace: Mapping[str, Any], parsed: ParsedModule) -> Iterator[str]:
    name = function.__code__.co_qualname
    if function.__globals__ is not namespace:
        # Somebody put it there by hand.
        if not is_generated(function) and is_typed(str(function.__globals__["__name__"])):
            yield f"{name} {digest_bytecode(function.__code__)}"
        return
    if is_generated(function):
        return
    if not is_in_file(function, parsed):
        yield f"{name} {digest_bytecode(function.__code__)}"
    for argument, value in defaults_of(function):
        key, text = f"{name}({argument})", text_of(value)
        if text is not None and parsed.literals.get(key, text) != text:
            yield f"{key} {text}"


def _constants(members: Mapping[str, Any], functions: Mapping[int, FunctionType], parsed: ParsedModule) -> list[str]:
    """Return numbers and texts that are not what the file says.

    Those that the module's own functions count or remember with are left out.
    """
    literals = {key: members[key] for key in parsed.literals.keys() & members.keys()}
    texts = {key: text_of(value) for key, value in literals.items() if not is_changeable(value)}
    changed = {key: text for key, text in texts.items() if text is not None and text != parsed.literals[key]}
    names = [names_of(function.__code__) for function in functions.values() if changed]
    stored = {name for used in names for name in (*used.stored, *used.stored_attributes)}
    return [f"{key} {text}" for key, text in changed.items() if key.rpartition(".")[2] not in stored]
