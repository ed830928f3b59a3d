from __future__ import annotations

from collections.abc import Callable

import pytest

from leaktight.core.metric import Reading
from leaktight.core.record import Cell, Record
from leaktight.papers import Records
from leaktight.papers.layer_leakage import guard
from leaktight.papers.layer_leakage.audits import audit_name
from leaktight.papers.layer_leakage.scales import Study
from leaktight.papers.row import rows_where


def _answer(cell: Cell, answer: Callable[[Cell], Record]) -> Record:
    """Noise on all layers costs accuracy and hides in equal parts; guards hide more for what they cost."""
    about = cell.defence.to_dict()
    inner = about.get("guard", about)
    std, count = inner.get("std", 0.0), about.get("count", 0)
    cost = 10 * std * (count / 5 if count else 1)
    auc = 0.9 - cost - (0.05 if count else 0.0)
    readings = (Reading(name="accuracy", value=0.9 - cost), Reading(name="property_auc", value=auc))
    return answer(cell).model_copy(update={"readings": readings})


def test_a_guard_is_compared_with_noise_on_all_at_its_own_accuracy(
    study: Study, answer: Callable[[Cell], Record]
) -> None:
    [(name, plan)] = guard.plans(study).items()
    assert name == audit_name(study.subjects[0], "guarded")
    found = guard.rows(study, Records({name: [_answer(cell, answer) for cell in plan.cells()]}))
    assert len(found) == 1 + 3 + 4 * 4
    for row in rows_where(found, defence=guard.GUARD):
        assert row["gap"] == pytest.approx(-0.05)
        assert row["compared"] == study.seeds
    for row in rows_where(found, defence=guard.NOISE):
        assert (row["gap"], row["compared"]) == (None, 0)
    assert all(check.holds for check in guard.checks(found))


@pytest.mark.parametrize(("comparable", "measured"), [(1, False), (2, True)])
def test_one_comparable_run_of_several_decides_nothing(
    study: Study, answer: Callable[[Cell], Record], comparable: int, measured: bool
) -> None:
    [(name, plan)] = guard.plans(study).items()
    records = []
    for cell in plan.cells():
        record = _answer(cell, answer)
        # A guarded model that is better than any other has none to be compared with.
        if cell.defence.kind == "layer_guard" and cell.seed >= study.seed + comparable:
            readings = (Reading(name="accuracy", value=0.99), *record.readings[1:])
            record = record.model_copy(update={"readings": readings})
        records.append(record)
    found = guard.rows(study, Records({name: records}))
    for row in rows_where(found, defence=guard.GUARD):
        assert row["compared"] == comparable
        assert (row["gap"] is not None) is measured
    words = {"not measured"} if not measured else {"holds"}
    assert {check.word for check in guard.checks(found)} == words
