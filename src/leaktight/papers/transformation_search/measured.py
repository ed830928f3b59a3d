"""What was measured: the records of a study, looked up by subject, defence, probe and stage, and compared with no defence seed by seed."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from statistics import fmean

from leaktight.core.defence import Defence
from leaktight.core.metric import Reading
from leaktight.core.record import Record, Status
from leaktight.papers.estimate import Estimate, difference
from leaktight.papers.paper import Records
from leaktight.papers.reproduction import Row, columns, interval_columns, over_seeds
from leaktight.papers.transformation_search.plans import ATTACK, Found, folder
from leaktight.papers.transformation_search.policies import undefended
from leaktight.papers.transformation_search.settings import Study, Subject

PSNR, ACCURACY = "psnr", "accuracy"


@dataclasses.dataclass(frozen=True)
class Place:
    """Which audit's records are asked for.

    Args:
        subject: the data set and the network.
        part: which of its audits.
        label: the probe, by its label in the plan.
        stage: when in training; None for when the study attacks models.
    """

    subject: Subject
    part: str
    label: str = ATTACK
    stage: str | None = None


@dataclasses.dataclass(frozen=True)
class Measured:
    """The records of a study.

    Args:
        study: what was planned.
        found: what was searched.
        seed: what was asked for.
        records: what came of it, by the name of the audit.
    """

    study: Study
    found: Found
    seed: int
    records: Records

    def done(self, place: Place, defence: Defence) -> dict[int, Record]:
        """Return what was measured under a defence, by seed."""
        stage = place.stage or self.study.attacked
        return {
            record.cell.seed: record
            for record in self.records.get(folder(place.subject, place.part), ())
            if (record.status, record.cell.purpose) == (Status.DONE, "measure")
            and (record.cell.label, record.cell.stage) == (place.label, stage)
            and record.cell.defence == defence
        }

    def readings(self, place: Place, defence: Defence, name: str, against: str | None = None) -> list[Reading]:
        """Return a reading under a defence for each seed that has it."""
        found = [record.reading(name, against) for record in self.done(place, defence).values()]
        return [reading for reading in found if reading is not None]

    def reading(self, place: Place, defence: Defence, name: str, against: str | None = None) -> Reading | None:
        """Return a reading of the first seed; None if there is none."""
        return next(iter(self.readings(place, defence, name, against)), None)

    def attacked(self, place: Place, defences: Sequence[Defence]) -> Row:
        """Return how well images are reconstructed under one of several defences: PSNR against the image that was used and the original.

        `chance` is the PSNR against the used image of the best answer that needs no message, and `psnr_drop` how much less it is than
        without a policy.
        """
        used = [one for defence in defences for one in self.readings(place, defence, PSNR, "used")]
        raw = [one for defence in defences for one in self.readings(place, defence, PSNR, "raw")]
        chances = [one.chance for one in used if one.chance is not None]
        return {
            **told(PSNR, used),
            **told("psnr_original", raw),
            "chance": fmean(chances) if chances else None,
            **_columns("psnr_drop", self._drop(place, defences)),
        }

    def learned(self, place: Place, defences: Sequence[Defence]) -> Row:
        """Return the test accuracy under one of several defences, how much more it is than without one, and after how many trainings."""
        readings = [one for defence in defences for one in self.readings(place, defence, ACCURACY)]
        return {
            **told(ACCURACY, readings),
            **_columns("accuracy_change", self._change(place, defences)),
            "trainings": len(readings),
        }

    def _drop(self, place: Place, defences: Sequence[Defence]) -> Estimate | None:
        """Compare the PSNR on the same images: over trainings if there are several, over the images of one."""
        pairs = self._pairs(place, defences, PSNR, "used")
        if len(pairs) == 1:
            [(_, before, after)] = pairs
            return _over([one - other for one, other in zip(before.each, after.each, strict=False)])
        return _over(_by_seed([(seed, before.value - after.value) for seed, before, after in pairs]))

    def _change(self, place: Place, defences: Sequence[Defence]) -> Estimate | None:
        pairs = self._pairs(place, defences, ACCURACY, None)
        if len(pairs) == 1:
            [(_, before, after)] = pairs
            return difference(_estimate(after), _estimate(before))
        return _over(_by_seed([(seed, after.value - before.value) for seed, before, after in pairs]))

    def _pairs(
        self, place: Place, defences: Sequence[Defence], name: str, against: str | None
    ) -> list[tuple[int, Reading, Reading]]:
        """Return each seed with its readings without a policy and with one of the defences."""
        plain = self.done(place, undefended(self.study))
        found = []
        for defence in defences:
            for seed, record in self.done(place, defence).items():
                before, after = plain[seed].reading(name, against) if seed in plain else None, record.reading(name, against)
                if before is not None and after is not None:
                    found.append((seed, before, after))
        return found


def _by_seed(values: Sequence[tuple[int, float]]) -> list[float]:
    """Return one mean for each seed, because its values share a training; of a single seed, the values themselves."""
    seeds = dict.fromkeys(seed for seed, _ in values)
    if len(seeds) == 1:
        return [value for _, value in values]
    return [fmean(value for own, value in values if own == seed) for seed in seeds]


def told(name: str, readings: Sequence[Reading]) -> Row:
    """Return three columns: the mean over trainings with its interval over them; of one alone, its reading with the reading's own.

    Example:
        >>> told("psnr", [Reading(name="psnr", value=7.5, low=7.0, high=8.0)])
        {'psnr': 7.5, 'psnr_low': 7.0, 'psnr_high': 8.0}
        >>> told("psnr", [Reading(name="psnr", value=7.5)] * 2)
        {'psnr': 7.5, 'psnr_low': 7.5, 'psnr_high': 7.5}
    """
    return columns(name, readings[0]) if len(readings) == 1 else over_seeds(name, [one.value for one in readings])


def _over(values: Sequence[float]) -> Estimate | None:
    row = over_seeds("mean", values)
    mean, low, high = (row[f"mean{end}"] for end in ("", "_low", "_high"))
    if not isinstance(mean, float):
        return None
    return Estimate(value=mean, low=low if isinstance(low, float) else None, high=high if isinstance(high, float) else None)


def _estimate(reading: Reading) -> Estimate:
    return Estimate(value=reading.value, low=reading.low, high=reading.high)


def _columns(name: str, found: Estimate | None) -> Row:
    return interval_columns(name, *((found.value, found.low, found.high) if found else (None, None, None)))
