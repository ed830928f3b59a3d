"""Which classes exist: every part, ours and a plugin's, comes in through the entry points `leaktight.plugins`.

An entry point names a module; importing it defines its classes, and a class with a `kind` registers itself.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points
from typing import Any, TypeVar

from leaktight.core.errors import InvalidValue, LeaktightError, unknown

PLUGINS = "leaktight.plugins"
"""The group of entry points."""
Found = TypeVar("Found")
_classes: dict[str, dict[str, type[Any]]] = {}


def add(family: str, kind: str, final: type[Any]) -> None:
    """Register a class under its family and kind; two different classes of one kind are an error."""
    present = _classes.setdefault(family, {}).setdefault(kind, final)
    if (present.__module__, present.__qualname__) != (final.__module__, final.__qualname__):
        raise InvalidValue(
            f"The {family} kind `{kind}` is defined by {present.__module__} and by {final.__module__}. Rename one of "
            "them."
        )


@cache
def load() -> None:
    """Import every module that an entry point of the group names, once."""
    for point in sorted(entry_points(group=PLUGINS), key=lambda point: point.name):
        try:
            point.load()
        except (ImportError, AttributeError, SyntaxError) as error:
            raise LeaktightError(
                f"The plugin `{point.name}` ({point.value}) could not be loaded: {error}. Mend or uninstall the "
                "package it comes from."
            ) from error


def classes(family: str) -> dict[str, type[Any]]:
    """Return the classes of a family by kind, in alphabetical order."""
    load()
    return dict(sorted(_classes.get(family, {}).items()))


def families() -> tuple[str, ...]:
    """Return the names of all families."""
    load()
    return tuple(sorted(_classes))


def find(family: str, kind: str, root: type[Found]) -> type[Found]:
    """Return the class of this family and kind, or raise an error that names the closest."""
    known = classes(family)
    if not kind:
        raise InvalidValue(f"A {family} needs a `kind`. Known are: {', '.join(f'`{name}`' for name in known)}.")
    if kind not in known:
        raise unknown(family, kind, known)
    final: type[Found] = known[kind]
    return final
