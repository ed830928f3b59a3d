"""A flag: one reason to doubt the audit itself."""

from __future__ import annotations

import dataclasses
from typing import Literal

Severity = Literal["doubt", "info"]


@dataclasses.dataclass(frozen=True)
class Flag:
    """One doubt.

    Args:
        name: which check raised it.
        sentence: what is doubtful and what to do.
        cells: the keys of the cells it is about.
        severity: `doubt` if numbers may mislead, `info` if only words may.
    """

    name: str
    sentence: str
    cells: tuple[str, ...] = ()
    severity: Severity = "doubt"
