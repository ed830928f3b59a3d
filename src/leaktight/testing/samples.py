"""Which classes there are to check: those that an installed plugin brings, ours among them."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Any

from leaktight.core import registry
from leaktight.core.errors import InvalidValue


def installed_classes(family: str) -> dict[str, type[Any]]:
    """Return the classes of a family that come in through an entry point, by kind; what a test defines is left out.

    Example:
        >>> "gaussian_noise" in installed_classes("defence")
        True
    """
    packages = {point.module.split(".")[0] for point in entry_points(group="leaktight.plugins")}
    return {kind: made for kind, made in registry.classes(family).items() if made.__module__.split(".")[0] in packages}


def sample(made: type[Any]) -> Any | None:
    """Return a class at its defaults, or None if it has settings without a default.

    Example:
        >>> from leaktight.defences import Pruning
        >>> sample(Pruning)
        Pruning(kind='pruning', rate=0.9)
    """
    try:
        return made()
    except InvalidValue:
        return None
