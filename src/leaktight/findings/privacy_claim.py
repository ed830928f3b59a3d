"""Definition 2 for the records of an audit: which defences are privacy-aware at an agreed price, under which attack."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from statistics import fmean

from leaktight.core.defence import is_undefended
from leaktight.core.metric import Reading
from leaktight.core.record import Record, Status
from leaktight.findings.display import STAGES, name_of
from leaktight.metrics.privacy_aware import Claim, PrivacyAware, privacy_aware
from leaktight.statistics.pooling import pool


@dataclasses.dataclass(frozen=True)
class ClaimVerdict:
    """What the records of one defence and one attack say of a claim.

    Args:
        defence: what the defence is called.
        attack: the label of the attack.
        stage: when messages were sent.
        batch_size: how many examples are behind one.
        verdict: what was found.
    """

    defence: str
    attack: str
    stage: str
    batch_size: int
    verdict: PrivacyAware

    def __str__(self) -> str:
        """Say so."""
        return f"{self.defence}, {self.attack}, {STAGES[self.stage]}, batches of {self.batch_size}: {self.verdict}"


def judge_claim(records: Sequence[Record], claim: Claim) -> Iterator[ClaimVerdict]:
    """Give the verdict on each defence under each attack that was graded by what it asks; seeds are pooled.

    Where an accuracy or the value of each example is missing, there is none.

    Args:
        records: of an audit.
        claim: what is asked.
    """
    groups: dict[tuple[object, ...], list[Record]] = {}
    plain: dict[tuple[object, ...], list[Record]] = {}
    for record in records:
        cell = record.cell
        if record.status is not Status.DONE or cell.purpose != "measure":
            continue
        if is_undefended(cell.defence):
            plain.setdefault((cell.scenario.key,), []).append(record)
        else:
            place = (cell.scenario.key, cell.defence.key, cell.label, cell.stage, cell.batch_size)
            groups.setdefault(place, []).append(record)
    for (scenario, *_), group in groups.items():
        values = [_join(group, claim.reading, against) for against in ("raw", "used")]
        accuracies = [_accuracy(group), _accuracy(plain.get((scenario,), []))]
        if None in values or None in accuracies:
            continue
        known = [reading for reading in (*values, *accuracies) if reading is not None]
        cell = group[0].cell
        messages = max(1, len(known[0].each) // cell.batch_size)
        yield ClaimVerdict(
            name_of(cell.defence),
            cell.label,
            cell.stage,
            cell.batch_size,
            privacy_aware(claim, known[:2], known[2], known[3], messages),
        )


def _join(records: Sequence[Record], name: str, against: str) -> Reading | None:
    """Return a reading with the values of all examples that an attacker answered."""
    readings = [
        reading
        for record in records
        for reading in record.readings
        if (reading.name, reading.against, reading.by) == (name, against, "") and reading.each
    ]
    if not readings:
        return None
    each = tuple(value for reading in readings for value in reading.each)
    return readings[0].model_copy(update={"value": fmean(each), "n": len(each), "each": each})


def _accuracy(records: Sequence[Record]) -> Reading | None:
    """Return the accuracy over training runs, one for each seed."""
    by_seed = {
        record.cell.seed: reading
        for record in records
        for reading in record.readings
        if reading.name == "accuracy" and not reading.by
    }
    return pool(list(by_seed.values())) if by_seed else None
