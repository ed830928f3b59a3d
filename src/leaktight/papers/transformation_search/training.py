"""Accuracy and loss at some moments of the training run, with no, a random and the hybrid policy (Fig. 3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from leaktight.learning.federated import Federated
from leaktight.papers.check import Check, at_most
from leaktight.papers.comparison import mean_of
from leaktight.papers.paper import Experiment, Plans
from leaktight.papers.records import Records
from leaktight.papers.row import Row, claims, groups, over_runs, paired_columns, reading_of, rows_where
from leaktight.papers.transformation_search import audits
from leaktight.papers.transformation_search.mechanisms import HYBRID, NONE, three_defences
from leaktight.papers.transformation_search.scales import Study
from leaktight.probes import LearningCurve

AFTER = f"{audits.ACCURACY}_after_"
LOST = "accuracy_lost"
CURVES = (audits.ACCURACY, "own_accuracy", "loss", "own_loss")
"""Of the model on public images, and on the participants' own; `accuracy_lost` is beside none, seed by seed."""
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
        audits.seeds_from(study, study.few),
        study.moments * study.participants,
        stages=("training",),
        batch_sizes=(study.batch_size,),
    )
    return {_audit(study): plan}


def rows(study: Study, records: Records) -> list[Row]:
    """Return a row for each moment; nothing under a policy whose training runs all failed."""
    runs = {name: records.where(_audit(study), defence=defence).done for name, defence in three_defences(study).items()}
    return [
        row
        for name, own in runs.items()
        for row in _rows({**audits.place_of(study.focus), "policy": name}, own, runs[NONE])
    ]


def checks(rows: Sequence[Row]) -> list[Check]:
    """Compare accuracies at the same moments of a training run."""
    verdicts = []
    for place, own in groups(rows, *audits.PLACE):
        gaps = [reading_of(row, LOST) for row in rows_where(own, policy=HYBRID) if row["rounds"]]
        words = f"Accuracy(none) - accuracy(hybrid), mean over moments of the training, {', '.join(place)}"
        verdicts.append(at_most(words, mean_of(gaps), audits.EQUAL))
    return verdicts


def _audit(study: Study) -> str:
    return audits.audit_name(study.focus, "training")


def _rows(place: Row, runs: Records, plain: Records) -> list[Row]:
    """Return a row for each moment, over training runs, beside those without a policy."""
    starts = {reading.name for record in runs for reading in record.readings if reading.name.startswith(AFTER)}
    rows: list[Row] = [
        {**place, "rounds": rounds, **_columns(runs, plain, f"_after_{rounds}", CURVES)}
        for rounds in sorted(int(name.removeprefix(AFTER)) for name in starts)
    ]
    ended = {cast("Federated", record.cell.scenario).rounds for record in runs}
    # At the end there is the accuracy of the whole training run alone.
    return rows + [{**place, "rounds": rounds, **_columns(runs, plain, "", CURVES[:1])} for rounds in ended]


def _columns(runs: Records, plain: Records, moment: str, measured: Sequence[str]) -> Row:
    row: Row = {}
    for name in CURVES:
        own = runs.readings(f"{name}{moment}", optional=True) if name in measured else {}
        row |= over_runs(name, own.values())
    own, bare = (each.readings(f"{audits.ACCURACY}{moment}", optional=True) for each in (runs, plain))
    return row | paired_columns(LOST, bare, own)


EXPERIMENT = Experiment(
    table="training",
    keys=(*audits.PLACE, "policy", "rounds"),
    plans=plans,
    rows=rows,
    published=PUBLISHED,
    checks=checks,
)
