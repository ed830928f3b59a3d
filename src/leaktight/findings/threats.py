"""Threats: what attackers are called, and which threat models of the literature an audit's attacks stand for."""

from __future__ import annotations

from collections.abc import Iterable

from leaktight.core.display import join_words
from leaktight.core.probe import Attempt, Probe
from leaktight.core.record import Record
from leaktight.core.threat_letter import Letter, letter_of
from leaktight.findings.display import label_of

SOURCE = "letters of Carletti et al. 2025"
_SEATS = {
    "server": "the server",
    "wire": "someone on the wire",
    "feature-party": "the feature party",
    "label-party": "the label party",
}


def name_of_seat(seat: str) -> str:
    """Return what sentences call whoever attacks from a seat.

    Example:
        >>> name_of_seat("wire"), name_of_seat("client-2"), name_of_seat("")
        ('someone on the wire', 'the participant client-2', 'the attacker')
    """
    return _SEATS.get(seat, f"the participant {seat}" if seat else "the attacker")


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
    return [f"{letter}: {join_words(list(attacks))}" for letter, attacks in sorted(found.items())]
