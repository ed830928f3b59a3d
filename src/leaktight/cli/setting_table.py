"""The table of settings that `explain` prints: name, range and default of every field of a value."""

from __future__ import annotations

import itertools
import textwrap
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin

import annotated_types
from pydantic.fields import FieldInfo

from leaktight.core.value import Registered, Value

_PLAIN = {int: "a whole number", float: "a number", str: "a text", bool: "true or false", NoneType: "nothing"}
_BOUNDS: dict[type, str] = {
    annotated_types.Ge: "at least",
    annotated_types.Gt: "above",
    annotated_types.Le: "at most",
    annotated_types.Lt: "below",
}
_NARROW, _USUAL = 24, 36
"""How wide a column is at least if it has so much to show, and how wide what a setting must be is in most tables."""
_LIMITS = {annotated_types.Ge: "ge", annotated_types.Gt: "gt", annotated_types.Le: "le", annotated_types.Lt: "lt"}


def settings(part: type[Registered], value: Registered | None = None, width: int = 100) -> list[str]:
    """Return a table of the settings of a class: names, what they must be, and defaults or values of an instance.

    Args:
        part: the class.
        value: the instance; None for defaults.
        width: how wide the table is at most, if names and words allow it.

    Example:
        >>> from leaktight.core.defence import Chain
        >>> settings(Chain)
        ['links  a list, each a kind of defence  ()']
    """
    rows = [
        (name, must_be(field), show_value(field, value, name))
        for name, field in part.model_fields.items()
        if name != "kind"
    ]
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(3)]
    room = width - widths[0] - 4
    widths[2] = min(widths[2], max(_NARROW, room - min(widths[1], _USUAL)))
    widths[1] = min(widths[1], max(_NARROW, room - widths[2]))
    return [line for row in rows for line in _cells(row, widths)]


def _cells(row: tuple[str, str, str], widths: list[int]) -> list[str]:
    """Return the lines of one row of a table."""
    columns = [textwrap.wrap(text, room, break_long_words=False) for text, room in zip(row, widths, strict=True)]
    lines = itertools.zip_longest(*columns, fillvalue="")
    return ["  ".join(f"{text:{room}}" for text, room in zip(line, widths, strict=True)).rstrip() for line in lines]


def must_be(field: FieldInfo) -> str:
    """Say what a field must be, with its range."""
    if NoneType in get_args(field.annotation) and (bounds := _bounds(field.metadata)):
        others = [one for one in get_args(field.annotation) if one is not NoneType]
        return " ".join([" or ".join(map(describe_type, others)), *bounds, "or nothing"])
    return " ".join([describe_type(field.annotation), *_bounds(field.metadata)])


def show_value(field: FieldInfo, value: Registered | None, name: str) -> str:
    """Show the value in an instance, or the default."""
    if value is not None:
        return _text(dict(value)[name])
    return "required" if field.is_required() else _text(field.get_default(call_default_factory=True))


def describe_type(annotation: Any) -> str:
    """Describe a type in words."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return " | ".join(map(str, inner))
    if isinstance(annotation, type) and issubclass(annotation, Registered):
        return f"a kind of {annotation.family}"
    if origin in (tuple, list, frozenset, set):
        return f"a list, each {describe_type(inner[0])}"
    if origin is Annotated:
        return " ".join([describe_type(inner[0]), *_bounds(inner[1:])])
    if inner and all(get_origin(one) is Literal for one in inner):
        return " | ".join(map(describe_type, inner))
    if inner:
        return " or ".join(describe_type(one) for one in inner)
    return _PLAIN.get(annotation, str(getattr(annotation, "__name__", annotation)))


def _bounds(metadata: Any) -> list[str]:
    found = []
    for one in metadata:
        parts = one.metadata if isinstance(one, FieldInfo) else [one]
        found += [f"{_BOUNDS[type(p)]} {_number(getattr(p, _LIMITS[type(p)]))}" for p in parts if type(p) in _BOUNDS]
    return [" and ".join(found)] if found else []


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


def _text(value: Any) -> str:
    if isinstance(value, Value) and not isinstance(value, Registered):
        return ", ".join(f"{name} {_text(part)}" for name, part in dict(value).items())
    if isinstance(value, frozenset):
        return " and ".join(sorted(map(str, value))) or "nothing"
    return str(value) if isinstance(value, Registered) else repr(value)
