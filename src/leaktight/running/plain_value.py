"""Plain values: numbers, texts, arrays and collections of them, as a text that is the same in every process."""

from __future__ import annotations

import dataclasses
import enum
import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from leaktight.core.digest import digest, tensor_parts
from leaktight.core.value import Value

_SINGLE = (
    bool,
    int,
    float,
    complex,
    bytes,
    type(None),
    type(Ellipsis),
    range,
    slice,
    torch.dtype,
    torch.device,
    np.generic,
)


def text_of(value: Any, folders: Iterable[str] = ()) -> str | None:
    """Return a plain value as a text, None for anything else.

    Args:
        value: any value.
        folders: folders that a text may begin with and that do not count: where code lies changes nothing.

    Example:
        >>> text_of((1, "a")), text_of({"b", "a"}), text_of("/home/me/x.csv", ["/home/me"]), text_of(print)
        ("(1, 'a')", "set('a', 'b')", "'./x.csv'", None)
    """
    try:
        return _text(value, tuple(folders))
    # A list that holds itself.
    except RecursionError:
        return None


def _text(value: Any, places: tuple[str, ...]) -> str | None:
    if isinstance(value, enum.Enum):
        return _text(value.value, places)
    if isinstance(value, str):
        start = max((folder for folder in places if value.startswith(folder)), key=len, default="")
        return repr(f".{value[len(start) :]}" if start else str(value))
    if isinstance(value, _SINGLE):
        return "nan" if isinstance(value, float) and math.isnan(value) else repr(value)
    if isinstance(value, Tensor | np.ndarray):
        return _array(value)
    if isinstance(value, Value):
        return f"{type(value).__qualname__} {value.key}"
    if dataclasses.is_dataclass(value) and not isinstance(value, type) and value.__dataclass_params__.frozen:  # type: ignore[attr-defined]
        return _join(
            type(value).__qualname__, [getattr(value, field.name) for field in dataclasses.fields(value)], places
        )
    if isinstance(value, dict):
        return _join("dict", [part for pair in value.items() for part in pair], places)
    if isinstance(value, set | frozenset):
        texts = [_text(part, places) for part in value]
        return None if None in texts else f"set({', '.join(sorted(map(str, texts)))})"
    if isinstance(value, tuple | list):
        return _join("" if isinstance(value, tuple) else "list", list(value), places)
    return None


def is_changeable(value: Any) -> bool:
    """Return whether a value can be changed in place: code may keep in it what it has seen.

    Example:
        >>> is_changeable({}), is_changeable((1, 2))
        (True, False)
    """
    return isinstance(value, list | dict | set)


def _join(name: str, values: list[Any], folders: tuple[str, ...]) -> str | None:
    texts = [_text(value, folders) for value in values]
    return None if None in texts else f"{name}({', '.join(map(str, texts))})"


def _array(value: Any) -> str | None:
    if isinstance(value, np.ndarray):
        return (
            None if value.dtype.hasobject else f"array {digest(str(value.dtype), repr(value.shape), value.tobytes())}"
        )
    if value.layout is not torch.strided or value.is_meta or value.is_quantized:
        return None
    return f"tensor {digest(*tensor_parts({'': value}))}"
