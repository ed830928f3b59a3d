"""Classes that break one promise each, known to the registry only while a test lasts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Literal

import pytest

from leaktight.core import registry
from leaktight.core.value import Registered

Make = Callable[..., Any]


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch) -> Make:
    registry.load()
    monkeypatch.setattr(registry, "_classes", {family: dict(known) for family, known in registry._classes.items()})

    def make_value(root: type[Registered], kind: str, settings: dict[str, Any] | None = None, **members: Any) -> Any:
        """Return a value of a new class: settings become fields, other members attributes of the class."""
        settings = settings or {}
        annotations: dict[str, Any] = {"kind": Literal[kind], **{name: type(value) for name, value in settings.items()}}
        plain = {
            name: value for name, value in members.items() if not callable(value) and not isinstance(value, property)
        }
        annotations |= dict.fromkeys(plain, ClassVar[Any])
        space = {
            "__module__": __name__,
            "__qualname__": kind,
            "__annotations__": annotations,
            "kind": kind,
            **settings,
            **members,
        }
        return type(root)(kind, (root,), space)()

    return make_value
