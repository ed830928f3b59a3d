"""Accuracy and loss at some moments of the training run, with no, a random and the hybrid policy (Fig. 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from leaktight.core.metric import Reading
from leaktight.core.record import Record
from leaktight.learning.federated import Federated
from leaktight.papers.check import Check, at_most
from leaktight.papers.comparison import difference, mean_of
from leaktight.papers.paper import Experiment, Plans
from leaktight.papers.records import Records, find_reading
from leaktight.papers.row import Row, claims, columns, groups, reading_of, rows_where
from leaktight.papers.transformation_search import audits
from leaktight.papers.transformation_search.mechanisms import HYBRID, NONE, three_defences
from leaktight.papers.transformation_search.scales import Study
from leaktight.probes import LearningCurve

AFTER = f"{audits.ACCURACY}_after_"
CURVES = (audits.ACCURACY, "own_accuracy", "loss", "own_loss")
"""Of the model on public images, and on the participants' own."""
PUBLISHED = claims(
    (
        "Policies slow the convergence on the training set slightly; on the validation set the speeds are identical.",
        "5.2, Fig. 3",
    )
)


def plans(study: Study) -> Plans:
    """Measure accuracy throughout the training run."""
    plan = audits.make_plan(
        audits.make_title(study.focus, "accuracy during training"),
        audits.make_scenario(study, study.focus).model_copy(update={"moments": study.moments}),
        three_defences(study).values(),
        {audits.ACCURACY: LearningCurve(examples=2000)},
        (study.seed,),
        study.moments * study.participants,
        stages=("training",),
        batch_sizes=(study.batch_size,),
    )
    return {_audit(study): plan}


def rows(study: Study, records: Records) -> list[Row]:
    """Return a row for each moment; nothing for a training run that failed."""
    return [
        row
        for name, defence in three_defences(study).items()
        for record in records.where(_audit(study), defence=defence).done
        for row in _rows({**audits.place_of(study.focus), "policy": name}, record)
    ]


def checks(rows: Sequence[Row]) -> list[Check]:
    """Compare accuracies at the same moments of a training run."""
    verdicts = []
    for place, own in groups(rows, *audits.PLACE):
        hybrid = {row["rounds"]: reading_of(row, audits.ACCURACY) for row in rows_where(own, policy=HYBRID)}
        plain = {row["rounds"]: reading_of(row, audits.ACCURACY) for row in rows_where(own, policy=NONE)}
        gaps = [difference(plain[rounds], hybrid[rounds]) for rounds in plain if rounds in hybrid and rounds]
        words = f"Accuracy(none) - accuracy(hybrid), mean over moments of the training, {', '.join(place)}"
        verdicts.append(at_most(words, mean_of(gaps), audits.EQUAL))
    return verdicts


def _audit(study: Study) -> str:
    return audits.audit_name(study.focus, "training")


def _rows(place: Row, record: Record) -> list[Row]:
    starts = [reading.name for reading in record.readings if reading.name.startswith(AFTER)]
    rows: list[Row] = []
    for rounds in sorted(int(name.removeprefix(AFTER)) for name in starts):
        measured = {name: find_reading(record, f"{name}_after_{rounds}") for name in CURVES}
        rows.append({**place, "rounds": rounds, **_columns(measured)})
    rounds = cast("Federated", record.cell.scenario).rounds
    end = {audits.ACCURACY: find_reading(record, audits.ACCURACY)}
    return [*rows, {**place, "rounds": rounds, **_columns(end)}]


def _columns(readings: Mapping[str, Reading | None]) -> Row:
    return {key: value for name in CURVES for key, value in columns(name, readings.get(name)).items()}


EXPERIMENT = Experiment(
    table="training",
    keys=(*audits.PLACE, "policy", "rounds"),
    plans=plans,
    rows=rows,
    published=PUBLISHED,
    checks=checks,
)
