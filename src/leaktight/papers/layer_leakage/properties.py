"""Several properties of one task: the attack on each, and how well what is measured without it predicts it (Fig. 7)."""

from __future__ import annotations

from collections.abc import Sequence

from leaktight.papers.check import Check
from leaktight.papers.correlation import Correlation, correlation_columns, of_columns
from leaktight.papers.layer_leakage import audits, layers
from leaktight.papers.layer_leakage.scales import Study, Subject
from leaktight.papers.paper import Experiment, Plans
from leaktight.papers.records import Records
from leaktight.papers.row import Row, claims, number, rows_where

OTHER = "other"
COEFFICIENTS = {audits.V_INFORMATION: "r_v_information", OTHER: "r_other", audits.JACOBIAN: "r_sensitivity"}
PUBLISHED = claims(
    ("For age, gender and hair layer 9 of VGG11Net, the first fully connected one, leaks most.", "6.3, Fig. 7"),
    ("For gender R is 0.595 for V-information, 0.357 less, and 0.822 for sensitivity, 0.136 more.", "6.3, Fig. 7"),
    ("The least sensitive layer alone still has an AUC of around 0.6.", "7"),
)


def plans(study: Study) -> Plans:
    """Attack the other properties, beside the subjects themselves."""
    others = {
        audits.audit_name(subject, audits.LEAK): audits.plan_attack(study, subject, (study.properties_on,), study.few)
        for subject in study.properties
    }
    return layers.plans(study) | others


def rows(study: Study, records: Records) -> list[Row]:
    """Return a row for each property and layer, with correlations over the layers of the property.

    Sensitivity is that of the task. V-information is that of the property itself, and once more that of another
    subject's property.
    """
    measured, network = layers.rows(study, records), study.properties_on
    tasks = [subject.task for subject in study.properties]
    main = [subject for subject in study.subjects if subject.task in tasks[:1]]
    rows: list[Row] = []
    for subject in (*main, *study.properties):
        other = next((each for each in study.subjects if each != subject), None)
        own: list[Row] = [
            {
                **place,
                **audits.leak_columns(records, subject, network, layer),
                **audits.leak_leads(records, subject, network, layer),
                **audits.sensitivity_columns(records, main[0], network, layer),
                OTHER: _information(measured, other, place) if other else None,
            }
            for place, layer in audits.places(subject, network)
        ]
        coefficients: Row = {}
        for column, name in COEFFICIENTS.items():
            coefficients |= _coefficient(of_columns(own, column, audits.AUC), name)
        rows += [{**{name: value for name, value in row.items() if name != OTHER}, **coefficients} for row in own]
    return rows


def checks(rows: Sequence[Row]) -> list[Check]:
    """Ask whether every property leaks most at the first fully connected layer.

    One of them is a subject of the table `layers` too, so that these have a name of their own.
    """
    return audits.check_places(rows, audits.AUC, "Property AUC in Fig. 7", "data_set", "task", "property", "network")


def _information(rows: Sequence[Row], subject: Subject, place: Row) -> float | None:
    """Return the V-information of the same layer about another subject's property."""
    wanted: Row = {"data_set": subject.data_set, "task": subject.task, "property": subject.private}
    [row] = rows_where(rows, network=place["network"], layer=place["layer"], **wanted)
    return number(row, audits.V_INFORMATION)


def _coefficient(correlation: Correlation | None, name: str) -> Row:
    return {
        column: value for column, value in correlation_columns(correlation, name).items() if column.startswith(name)
    }


EXPERIMENT = Experiment(
    table="properties",
    keys=audits.KEYS,
    plans=plans,
    rows=rows,
    published=PUBLISHED,
    checks=checks,
)
