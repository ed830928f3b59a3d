"""Cells and records: one square of an audit, and what came of it. Done, refused or failed, never silently missing."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, SerializeAsAny

from leaktight.core.defence import Defence
from leaktight.core.metric import Reading
from leaktight.core.probe import LUCKIEST, Probe
from leaktight.core.scenario import Scenario
from leaktight.core.value import Value

RECORD_FORMAT = 1


class Status(StrEnum):
    """What came of a cell."""

    DONE = "done"
    REFUSED = "refused"
    FAILED = "failed"


class Cell(Value):
    """One square of an audit. Its `key` is the hash of everything that decides its result.

    Args:
        scenario: data, model and how they learn.
        defence: what the parties do about leakage.
        probe: what is measured.
        stage: when in training it is measured; `training` is spread over all of it, where the scenario offers that.
        batch_size: how many examples are behind one local step of one participant.
        victims: how many messages are measured.
        seed: what all randomness derives from.
        purpose: `measure`; or `control`, a cell whose answer is known; or `null`, one whose messages were replaced by
            noise.
        label: how the report names the probe.
    """

    scenario: SerializeAsAny[Scenario]
    defence: SerializeAsAny[Defence]
    probe: SerializeAsAny[Probe]
    stage: Literal["initial", "early", "end", "training"] = "initial"
    batch_size: int = 1
    victims: int = 8
    seed: int = 0
    purpose: Literal["measure", "control", "null"] = "measure"
    label: str = ""
    format: int = RECORD_FORMAT


class Record(Value):
    """What came of one cell. Everything but `seconds` follows from the cell alone.

    Args:
        cell: which one.
        status: whether it was done.
        reason: why not, or a remark.
        readings: what was measured.
        notes: what parties noted.
        seconds: how long it took.
        class_names: what the classes of its data are called, in their order; empty if nobody says.
    """

    cell: Cell
    status: Status
    reason: str = ""
    readings: tuple[Reading, ...] = ()
    notes: dict[str, Annotated[float, Field(allow_inf_nan=True)]] = {}  # an epsilon may be infinite
    seconds: float = 0.0
    class_names: tuple[str, ...] = Field((), exclude_if=lambda names: not names)

    @property
    def members(self) -> tuple[str, ...]:
        """The names of the attacks that were tried together; none for an attack by itself."""
        return tuple(dict.fromkeys(reading.by for reading in self.readings if reading.by not in ("", LUCKIEST)))

    def reading(self, name: str, against: str | None = None) -> Reading | None:
        """Return the first reading of this name that is the attack's own."""
        return next((r for r in self.readings if r.name == name and against in (None, r.against) and not r.by), None)
