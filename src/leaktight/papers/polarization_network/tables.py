"""Tables: the paper's, from the records of our audits."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from leaktight.core.defence import Defence, Undefended
from leaktight.core.metric import Reading
from leaktight.core.record import Record
from leaktight.findings.characteristic import DISTANCES, cap_reading
from leaktight.findings.rows import RATIO
from leaktight.metrics.tradeoff import Point, region
from leaktight.papers.paper import Records
from leaktight.papers.polarization_network.mechanisms import (
    BITS,
    GAUSSIAN,
    LAPLACE,
    MECHANISMS,
    MODELLED,
    NONE,
    against_adaptive,
    gaussian,
    laplace,
    spn,
    swept,
)
from leaktight.papers.polarization_network.plans import ADAPTIVE, ATTACK, LABELS
from leaktight.papers.polarization_network.settings import Study, Sweep
from leaktight.papers.reproduction import Row, Tables, columns

MEMBERSHIP = "membership"


@dataclasses.dataclass(frozen=True)
class Measured:
    """The records of one study, to be looked up by what was measured.

    Args:
        study: what was planned.
        trained: the records of its trainings for accuracies.
        attacked: those of its attacks on every mechanism.
    """

    study: Study
    trained: Sequence[Record]
    attacked: Sequence[Record]

    @classmethod
    def of(cls, study: Study, records: Records) -> Measured:
        """Pick a study's records by the names of its plans."""
        attacks = [
            record
            for name, found in records.items()
            if name.startswith((f"{study.name}-attack-", f"{study.name}-modelled-"))
            for record in found
        ]
        return cls(study, records[f"{study.name}-accuracy"], attacks)

    def accuracy(self, defence: Defence) -> Reading | None:
        """Return the test accuracy under a defence."""
        found = next((r for r in self.trained if r.cell.purpose == "measure" and r.cell.defence == defence), None)
        return found.reading("accuracy") if found else None

    def reading(self, name: str, defence: Defence, batch_size: int, attack: str = ATTACK) -> Reading | None:
        """Return a reading of an attack on a defence."""
        wanted = ("measure", attack, batch_size, defence)
        for record in self.attacked:
            cell = record.cell
            if (cell.purpose, cell.label, cell.batch_size, cell.defence) == wanted:
                return record.reading(name, "raw")
        return None

    def strongest(self, aim: str, defence: Defence, batch_size: int, knowing: bool) -> Reading | None:
        """Return the smallest distance that an attacker gets who runs every attack there is; None if one of them is missing.

        Args:
            aim: what the attacker is after.
            defence: the mechanism at its strength.
            batch_size: examples behind one gradient.
            knowing: whether the attacker knows of the defence and so can model it.
        """
        attacks = [ATTACK, *([ADAPTIVE] if knowing else []), *([LABELS] if aim == MEMBERSHIP else [])]
        found = [self.reading(DISTANCES[aim], defence, batch_size, attack) for attack in attacks]
        known = [reading for reading in found if reading is not None]
        return min(known, key=lambda reading: reading.value) if len(known) == len(attacks) else None


def tables_of(measured: Sequence[Measured]) -> Tables:
    """Return every table that follows from trainings and attacks; `federations` makes the one of the federations."""
    return {
        "ppc": [row for one in measured for row in _characteristics(one)],
        "cap": [row for one in measured for row in _performances(one)],
        "accuracy": [row for one in measured for row in _accuracies(one)],
        "bits": [row for one in measured for row in _bits(one)],
        "laplace": [row for one in measured for row in _laplace(one)],
    }


def _accuracies(measured: Measured) -> list[Row]:
    study = measured.study
    return [
        {
            "data_set": study.name,
            "mechanism": name,
            "strength": strength,
            **columns("accuracy", measured.accuracy(defence)),
        }
        for (name, strength), defence in _with_none(swept(study.noise, study.alpha2)).items()
    ]


def _characteristics(measured: Measured) -> list[Row]:
    """Return every point of the privacy-preserving characteristics (Fig. 5, 9 to 11, 13 to 15, 17 to 19, 21 to 23)."""
    return [
        _point(measured, name, strength, defence, batch_size)
        for sweep in measured.study.sweeps
        for batch_size in sweep.batch_sizes
        for (name, strength), defence in _with_none(swept(sweep.noise, sweep.alpha2)).items()
    ]


def _point(measured: Measured, name: str, strength: float, defence: Defence, batch_size: int) -> Row:
    ratio = measured.reading(RATIO, defence, batch_size)
    row: Row = {
        "data_set": measured.study.name,
        "mechanism": name,
        "strength": strength,
        "batch_size": batch_size,
        **columns("ratio", ratio),
        "region": region(ratio.value) if ratio else None,
        **columns("accuracy", measured.accuracy(defence)),
    }
    knowing = name in MODELLED
    for aim, reading in DISTANCES.items():
        row |= columns(aim, measured.reading(reading, defence, batch_size))
    row |= columns(LABELS, measured.reading(DISTANCES[MEMBERSHIP], defence, batch_size, LABELS))
    for aim, reading in DISTANCES.items():
        known = measured.reading(reading, defence, batch_size, ADAPTIVE) if knowing else None
        row |= columns(f"adaptive_{aim}", known)
    for aim in DISTANCES:
        row |= columns(f"strongest_{aim}", measured.strongest(aim, defence, batch_size, knowing))
    return row


def _performances(measured: Measured) -> list[Row]:
    """Return the calibrated averaged performances (Tables 7 to 10), and those against who knows the mechanism.

    That attacker takes at each strength the best of all attacks.
    """
    mechanisms = [(one.name, False) for one in MECHANISMS] + [(name, True) for name in MODELLED]
    return [
        _performance(measured, sweep, mechanism, attack, batch_size, known)
        for sweep in measured.study.sweeps
        for batch_size in sweep.batch_sizes
        for attack in DISTANCES
        for mechanism, known in mechanisms
    ]


def _performance(measured: Measured, sweep: Sweep, mechanism: str, attack: str, batch_size: int, known: bool) -> Row:
    points = []
    wanted = [
        (strength, defence) for (name, strength), defence in swept(sweep.noise, sweep.alpha2).items() if name == mechanism
    ]
    for strength, defence in wanted:
        accuracy = measured.accuracy(defence)
        distance = (
            measured.strongest(attack, defence, batch_size, knowing=True)
            if known
            else measured.reading(DISTANCES[attack], defence, batch_size)
        )
        if accuracy and distance:
            points.append(Point(accuracy, distance, strength))
    return {
        "data_set": measured.study.name,
        "mechanism": against_adaptive(mechanism) if known else mechanism,
        "attack": attack,
        "batch_size": batch_size,
        **columns("cap", cap_reading(attack, points, len(wanted))),
        "strengths": len(points),
    }


def _bits(measured: Measured) -> list[Row]:
    """Return ratio and error by the length of the code (Fig. 27)."""
    study = measured.study
    return [
        {"data_set": study.name, "bits": bits, "strength": alpha2, **_effect(measured, spn(alpha2, bits))}
        for bits in sorted({BITS, *study.bits})
        for alpha2 in study.bits_alpha2
    ]


def _laplace(measured: Measured) -> list[Row]:
    """Return ratio and error by the kind of noise (Fig. 26)."""
    return [
        {"data_set": measured.study.name, "noise": name, "strength": scale, **_effect(measured, make(scale))}
        for name, make in ((GAUSSIAN, gaussian), (LAPLACE, laplace))
        for scale in measured.study.laplace
    ]


def _effect(measured: Measured, defence: Defence) -> Row:
    ratio = measured.reading(RATIO, defence, batch_size=1)
    error = measured.reading(DISTANCES["reconstruction"], defence, batch_size=1)
    return {**columns("ratio", ratio), **columns("reconstruction", error)}


def _with_none(defences: dict[tuple[str, float], Defence]) -> dict[tuple[str, float], Defence]:
    return {(NONE, 0.0): Undefended(), **defences}
