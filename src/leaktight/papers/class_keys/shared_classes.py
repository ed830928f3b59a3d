"""Accuracies where participants share classes (section 5.4)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from leaktight.papers.check import Check, at_least
from leaktight.papers.class_keys import audits
from leaktight.papers.class_keys.mechanisms import PLAIN, frameworks
from leaktight.papers.class_keys.scales import Scope, Study
from leaktight.papers.paper import Experiment, Plans
from leaktight.papers.records import Records
from leaktight.papers.row import Row, claims, reading_of

PARTICIPANTS = 2
PUBLISHED = claims(("Training with shared classes has no observable issues.", "5.4"))


def plans(scope: Scope) -> Plans:
    """Train participants some of whose classes are the same."""
    return {
        _audit(study): audits.plan_honest(
            scope,
            study,
            "shared classes",
            {"shared classes": audits.make_federation(study, overlapping_classes(study.classes), study.rounds)},
            frameworks((study.dimensions,)),
        )
        for study in scope.studies
    }


def rows(scope: Scope, records: Records) -> list[Row]:
    """Return a row for each framework."""
    return [
        {
            "data_set": study.name,
            "participants": PARTICIPANTS,
            "framework": name,
            "rounds": study.rounds,
            **audits.accuracy_columns(records, _audit(study), defence, "of_plain"),
        }
        for study in scope.studies
        for name, defence in frameworks((study.dimensions,)).items()
    ]


def checks(rows: Sequence[Row]) -> list[Check]:
    """Ask how much of the plain framework's accuracy keys keep."""
    return [
        at_least(
            f"Accuracy({row['framework']}) / accuracy(plain), shared classes, {row['data_set']}",
            reading_of(row, "of_plain"),
            audits.KEPT,
        )
        for row in rows
        if row["framework"] != PLAIN
    ]


def overlapping_classes(classes: int) -> audits.Owned:
    """Return the classes of two participants that share two fifths of them.

    Example:
        >>> overlapping_classes(10)
        ((0, 1, 2, 3, 4, 5, 6), (3, 4, 5, 6, 7, 8, 9))
    """
    most = math.ceil(0.7 * classes)
    return tuple(range(most)), tuple(range(classes - most, classes))


def _audit(study: Study) -> str:
    return audits.audit_name(study.name, "shared")


EXPERIMENT = Experiment(
    table="shared_classes",
    keys=("data_set", "framework"),
    plans=plans,
    rows=rows,
    published=PUBLISHED,
    checks=checks,
)
