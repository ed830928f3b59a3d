"""Several tasks: the sensitivity of each layer as a share of all layers, by what is learned (Fig. 8)."""

from __future__ import annotations

from collections.abc import Sequence

from leaktight.papers.check import Check
from leaktight.papers.layer_leakage import audits
from leaktight.papers.layer_leakage.networks import convolutional
from leaktight.papers.layer_leakage.scales import Study
from leaktight.papers.paper import Experiment, Plans
from leaktight.papers.records import Records
from leaktight.papers.row import Row, claims

PUBLISHED = claims(
    ("Whatever the task, layer 4 of AlexNet and layer 9 or 10 of VGG11Net are the most sensitive.", "6.3, Fig. 8"),
    ("Accuracies of AlexNet: gender 0.99, glasses 0.80, race 0.76, hair 0.52, age 0.43.", "6.3"),
    ("Accuracies of VGG11Net: gender 0.99, glasses 0.89, race 0.75, hair 0.49, age 0.33.", "6.3"),
)


def plans(study: Study) -> Plans:
    """Measure the models of all subjects, and of the further tasks."""
    further = {
        audits.audit_name(subject, audits.MODEL): audits.plan_model(
            study, subject, convolutional(study.networks), study.few
        )
        for subject in study.tasks
    }
    return audits.plan_models(study) | further


def rows(study: Study, records: Records) -> list[Row]:
    """Return a row for each task and layer of the networks with convolutions."""
    name = f"{audits.NORMS['F']}_share"
    return [
        {
            **place,
            **audits.measured_columns(
                "share", records, subject, audits.MODEL, network, audits.SENSITIVITY, name, layer
            ),
            **audits.lead_columns("share", records, subject, audits.MODEL, network, audits.SENSITIVITY, name, layer),
            **audits.accuracy_columns(records, subject, audits.MODEL, network, audits.SENSITIVITY),
        }
        for subject in (*study.subjects, *study.tasks)
        for network in convolutional(study.networks)
        for place, layer in audits.places(subject, network)
    ]


def checks(rows: Sequence[Row]) -> list[Check]:
    """Ask whether the first fully connected layer is the most sensitive, whatever the task."""
    return audits.check_places(rows, "share", "Share of sensitivity", "data_set", "task", "network")


EXPERIMENT = Experiment(
    table="tasks",
    keys=audits.KEYS,
    plans=plans,
    rows=rows,
    published=PUBLISHED,
    checks=checks,
)
