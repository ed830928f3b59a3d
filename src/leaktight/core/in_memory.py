"""In memory: a network or data that a program has as objects, found by name while an audit of them runs.

Settings hold the name alone. What it stands for counts by its content, like everything that settings only name.
"""

from __future__ import annotations

import base64
import dataclasses
import pickle
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from leaktight.core.errors import InvalidValue

Object = TypeVar("Object")
Place = tuple[str, str]
"""A family (`data`, `model`) and a name in it."""


@dataclasses.dataclass(frozen=True, eq=False)
class Held:
    """An object that settings name, for as long as an audit of it runs. It is equal to itself alone."""

    content: Any


_held: dict[Place, Held] = {}


@contextmanager
def hold(objects: Mapping[Place, Any]) -> Iterator[None]:
    """Let settings name these objects inside the block.

    Raises:
        InvalidValue: another audit in this process uses one of the names.

    Example:
        >>> with hold({("data", "mine"): [1, 2]}):
        ...     find("data", "mine", list).content
        [1, 2]
    """
    taken = next((name for family, name in objects if (family, name) in _held), None)
    if taken is not None:
        raise InvalidValue(
            f"An audit of `{taken}` is running in this process already. Wait until it has ended, or use a process of "
            "its own."
        )
    add(objects)
    try:
        yield
    finally:
        for place in objects:
            del _held[place]


def add(objects: Mapping[Place, Any]) -> None:
    """Let settings name these objects in this process from now on."""
    _held.update({place: Held(content) for place, content in objects.items()})


def find(family: str, name: str, kind: type[Object]) -> Held:
    """Return what a name stands for, or say that it is not here."""
    entry = _held.get((family, name))
    if entry is None or not isinstance(entry.content, kind):
        raise InvalidValue(
            f"The {family} `{name}` was in the memory of a program and is not here. Call `leaktight.audit_model` again "
            "with the same folder as `out`."
        )
    return entry


def encode() -> str:
    """Return all that is held, for worker processes of this program; an empty text if there is nothing.

    Raises:
        InvalidValue: a worker process could not make it again.
    """
    if not _held:
        return ""
    try:
        content = pickle.dumps({place: entry.content for place, entry in _held.items()})
    # A person's own object may fail in any way.
    except Exception as error:
        raise _unsendable(str(error) or type(error).__name__) from error
    if b"__main__" in content and not getattr(sys.modules["__main__"], "__file__", None):
        raise _unsendable("its class was typed here, and they cannot import it")
    return base64.b85encode(content).decode()


def decode(text: str) -> dict[Place, Any]:
    """Undo `encode`, in a worker process: what it is given comes from the program that started it, and nobody else."""
    objects: dict[Place, Any] = pickle.loads(base64.b85decode(text)) if text else {}  # noqa: S301
    return objects


def _unsendable(why: str) -> InvalidValue:
    lines = why.strip().splitlines() or [why]
    return InvalidValue(
        f"The network or data cannot be sent to worker processes: {lines[0].rstrip('.')}. Use `workers=1`, or define "
        "its class in a module that can be imported."
    )
