"""Settings in words: name, range and default of every field of a value."""

from __future__ import annotations

from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin

import annotated_types
from pydantic.fields import FieldInfo

from leaktight.core.value import Registered

_PLAIN = {int: "a whole number", float: "a number", str: "a text", bool: "true or false", NoneType: "nothing"}
_BOUNDS: dict[type, str] = {
    annotated_types.Ge: "at least",
    annotated_types.Gt: "above",
    annotated_types.Le: "at most",
    annotated_types.Lt: "below",
}
_LIMITS = {annotated_types.Ge: "ge", annotated_types.Gt: "gt", annotated_types.Le: "le", annotated_types.Lt: "lt"}


def settings(made: type[Registered], value: Registered | None = None) -> list[str]:
    """Return a line for each setting of a class: its name, what it must be, and its default or its value in one instance.

    Example:
        >>> from leaktight.core.defence import Chain
        >>> settings(Chain)
        ['links  a list, each a kind of defence  ()']
    """
    rows = [(name, must_be(field), shown(field, value, name)) for name, field in made.model_fields.items() if name != "kind"]
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(2)]
    return [f"{name:{widths[0]}}  {must:{widths[1]}}  {text}".rstrip() for name, must, text in rows]


def must_be(field: FieldInfo) -> str:
    """Say what a field must be, with its range."""
    return " ".join([described(field.annotation), *_bounds(field.metadata)])


def shown(field: FieldInfo, value: Registered | None, name: str) -> str:
    """Show the value in an instance, or the default."""
    if value is not None:
        return _text(dict(value)[name])
    return "required" if field.is_required() else _text(field.get_default(call_default_factory=True))


def described(annotation: Any) -> str:
    """Describe a type in words."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return " | ".join(map(str, inner))
    if isinstance(annotation, type) and issubclass(annotation, Registered):
        return f"a kind of {annotation.family}"
    if origin in (tuple, list, frozenset, set):
        return f"a list, each {described(inner[0])}"
    if origin is Annotated:
        return " ".join([described(inner[0]), *_bounds(inner[1:])])
    if inner:
        return " or ".join(described(one) for one in inner)
    return _PLAIN.get(annotation, str(getattr(annotation, "__name__", annotation)))


def _bounds(metadata: Any) -> list[str]:
    found = []
    for one in metadata:
        parts = one.metadata if isinstance(one, FieldInfo) else [one]
        found += [f"{_BOUNDS[type(p)]} {getattr(p, _LIMITS[type(p)]):g}" for p in parts if type(p) in _BOUNDS]
    return [" and ".join(found)] if found else []


def _text(value: Any) -> str:
    return str(value) if isinstance(value, Registered) else repr(value)
