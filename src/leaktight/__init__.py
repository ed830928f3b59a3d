"""Leaktight: what do shared messages leak, and what does each defence do about it, at what cost in accuracy?"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leaktight.api import audit_model
    from leaktight.captures import Recorder
    from leaktight.flower import protect, record

__version__ = "0.1.0"
__all__ = ["Recorder", "__version__", "audit_model", "protect", "record"]

_HOMES = {
    "Recorder": "leaktight.captures",
    "audit_model": "leaktight.api",
    "protect": "leaktight.flower",
    "record": "leaktight.flower",
}
"""Where each name is: it is imported when it is first used, and torch with it."""


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
