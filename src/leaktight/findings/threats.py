"""Threats: which threat models of the literature an audit's attacks stand for."""

from __future__ import annotations

from collections.abc import Iterable

from leaktight.core.display import listed
from leaktight.core.probe import Attempt, Probe
from leaktight.core.record import Record
from leaktight.core.threat_letter import Letter, letter_of
from leaktight.findings.display import label_of

SOURCE = "letters of Carletti et al. 2025"


def letter_of_probe(probe: Probe) -> Letter | None:
    """Return the letter of a probe's threat model; None for one that has none, or that holds no attack."""
    return letter_of(probe.threat, probe.attack.active) if isinstance(probe, Attempt) else None


def attacks_by_letter(records: Iterable[Record]) -> list[str]:
    """Return for each letter that was measured which attacks stand for it, in words.

    Example:
        >>> attacks_by_letter([])
        []
    """
    found: dict[str, dict[str, None]] = {}
    for record in records:
        letter = letter_of_probe(record.cell.probe)
        if record.cell.purpose == "measure" and letter is not None:
            found.setdefault(str(letter), {})[label_of(record.cell)] = None
    return [f"{letter}: {listed(list(attacks))}" for letter, attacks in sorted(found.items())]
