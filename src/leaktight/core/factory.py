"""A person's own code, named as `package.module:function`: it is imported, and called with the arguments it names."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
import traceback
from types import ModuleType
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel

from leaktight.core.errors import InvalidValue, LeaktightError, did_you_mean

FORM = "package.module:function"
_MISSING = object()


def is_reference(text: str) -> bool:
    """Return whether a text has the form `package.module:function`.

    Example:
        >>> is_reference("my_project.models:small"), is_reference("dlnet")
        (True, False)
    """
    module, colon, attribute = text.partition(":")
    return bool(colon) and all(part.isidentifier() for part in f"{module}.{attribute}".split("."))


def _check_reference(text: str) -> str:
    if not is_reference(text):
        raise ValueError(f"must have the form `{FORM}`. Got {text!r} instead.")
    return text


Reference = Annotated[str, AfterValidator(_check_reference)]
"""The type of a setting that names a person's own code."""


def references(value: BaseModel) -> list[str]:
    """Return what a set of settings names of a person's own code."""
    fields = type(value).model_fields.items()
    named = [
        name
        for name, field in fields
        if any(getattr(rule, "func", None) is _check_reference for rule in field.metadata)
    ]
    return [str(dict(value)[name]) for name in named]


def load_object(reference: str) -> Any:
    """Return what `package.module:function` names; modules of the current folder are found first, as `python -m` does.

    Args:
        reference: a module to import and, after the colon, a name in it (dots lead into classes).

    Raises:
        InvalidValue: the text has another form, the module is missing or fails while it is imported, or it has no such
            name.

    Example:
        >>> load_object("math:sqrt")(9.0)
        3.0
    """
    if not is_reference(reference):
        raise InvalidValue(f"A reference to your own code must have the form `{FORM}`. Got {reference!r} instead.")
    name, _, attribute = reference.partition(":")
    target: Any = _module(name)
    for part in attribute.split("."):
        inner = getattr(target, part, _MISSING)
        if inner is _MISSING:
            raise InvalidValue(
                f"{_describe(target, name)} has no `{part}`. {did_you_mean(part, _own_names(target, name))}"
            )
        target = inner
    return target


def call_object(reference: str, **offered: Any) -> Any:
    """Load `package.module:function`, call it with those offered arguments that it names, and return the result.

    Args:
        reference: what to call.
        offered: arguments it may ask for by name; one that it does not name is left out.

    Raises:
        InvalidValue: it cannot be loaded or called, needs something that is not on offer, or fails.

    Example:
        >>> call_object("fractions:Fraction", numerator=3, shape=(1, 8, 8))
        Fraction(3, 1)
    """
    function = load_object(reference)
    if not callable(function) or isinstance(function, ModuleType):
        raise InvalidValue(
            f"`{reference}` must be a function or a class. Got {_with_article(type(function).__name__)} instead."
        )
    wanted = _parameters(function)
    takes_all = any(parameter.kind is parameter.VAR_KEYWORD for parameter in wanted.values())
    needed = [
        name
        for name, parameter in wanted.items()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        and (name not in offered or parameter.kind is parameter.POSITIONAL_ONLY)
    ]
    if needed:
        offer = ", ".join(f"`{name}`" for name in offered) or "no arguments"
        raise InvalidValue(
            f"`{reference}` must need nothing but what it is offered: {offer}. "
            f"It also needs {', '.join(f'`{name}`' for name in needed)}; give those a default."
        )
    try:
        return function(**{name: value for name, value in offered.items() if takes_all or name in wanted})
    except LeaktightError:
        raise
    # Someone else's code may fail in any way, and its author needs the reason, not our traceback.
    except (Exception, SystemExit) as error:
        raise InvalidValue(f"`{reference}` failed with {reason_of(error, reference.partition(':')[0])}.") from error


def reason_of(error: BaseException, module: str = "") -> str:
    """Return an exception's name, the first line of its text, and where in a person's own package it came from.

    Args:
        error: what was raised by someone else's code.
        module: a module of that code; without it no place is named.

    Example:
        >>> reason_of(ZeroDivisionError("division by zero"))
        'ZeroDivisionError: division by zero'
    """
    lines = str(error).strip().splitlines()
    said = f"{type(error).__name__}: {lines[0].rstrip('.')}" if lines else type(error).__name__
    root = module.partition(".")[0]
    own = [
        f"{os.path.basename(frame.f_code.co_filename)}, line {number}"
        for frame, number in traceback.walk_tb(error.__traceback__)
        if root and str(frame.f_globals.get("__name__", "")).partition(".")[0] == root
    ]
    return f"{said} ({own[-1]})" if own else said


def _module(name: str) -> ModuleType:
    here = os.getcwd()
    if here not in sys.path and "" not in sys.path:
        # It stays, because the module may import its neighbours later, when it is called.
        sys.path.insert(0, here)
    importlib.invalidate_caches()
    try:
        return importlib.import_module(name)
    except LeaktightError:
        raise
    # As in `call_object`: whatever the module's top level raises is for its author to read.
    except (Exception, SystemExit) as error:
        if isinstance(error, ModuleNotFoundError) and error.name and f"{name}.".startswith(f"{error.name}."):
            raise InvalidValue(
                f"There is no module named `{error.name}` in the current folder or among the installed packages. "
                f"Check the spelling of `{name}`, or start from the folder that holds it."
            ) from None
        raise InvalidValue(f"The module `{name}` could not be imported: {reason_of(error, name)}.") from error


def _parameters(function: Any) -> dict[str, inspect.Parameter]:
    try:
        return dict(inspect.signature(function).parameters)
    except ValueError:
        return {}


def _own_names(owner: Any, module: str) -> list[str]:
    """Return the functions and classes that a module defines itself: what a misspelt name may have meant."""
    members = {name: getattr(owner, name, None) for name in dir(owner) if not name.startswith("_")}
    return [name for name, value in members.items() if callable(value) and getattr(value, "__module__", None) == module]


def _describe(owner: Any, module: str) -> str:
    if isinstance(owner, ModuleType):
        return f"The module `{module}` ({getattr(owner, '__file__', None) or 'built in'})"
    return f"`{getattr(owner, '__qualname__', owner)}` of the module `{module}`"


def _with_article(noun: str) -> str:
    return f"{'an' if noun[0].lower() in 'aeiou' else 'a'} {noun}"
