"""What every layer leaks: property inference on it alone, beside its V-information and sensitivity (Fig. 2, 3)."""

from __future__ import annotations

from collections.abc import Sequence

from leaktight.papers.check import Check
from leaktight.papers.layer_leakage import audits
from leaktight.papers.layer_leakage.scales import Study
from leaktight.papers.paper import Experiment, Plans
from leaktight.papers.records import Records
from leaktight.papers.row import Row, claims

SPREAD = (
    "With two classes the gradients towards both are multiples of each other, so that the sensitivity of a layer is, "
    "for each example, the root of the mean square of the layer's gradient over its range, times a factor that all "
    "layers share: it says how evenly a gradient is spread."
)
PUBLISHED = claims(
    ("V-information and sensitivity both are highest at the first fully connected layer, in general.", "6.1, Fig. 2"),
    ("They are highest at layer 4 of AlexNet, 9 or 10 of VGG11Net and 1 of FCNet.", "6.1, Fig. 2"),
    ("Attacks on single layers have the same pattern.", "6.2, Fig. 3"),
    ("Test accuracies for gender on LFW are 0.99 (AlexNet), 0.99 (VGG11Net) and 0.94 (FCNet).", "6.1"),
)


def plans(study: Study) -> Plans:
    """Return the audits of every subject, during training and at its end."""
    return audits.plan_leaks(study) | audits.plan_models(study)


def rows(study: Study, records: Records) -> list[Row]:
    """Return a row for each subject, network and layer."""
    return [
        {
            **place,
            **audits.leak_columns(records, subject, network, layer),
            **audits.sensitivity_columns(records, subject, network, layer),
            **audits.accuracy_columns(records, subject, audits.LEAK, network, audits.FOREST),
            **audits.leak_leads(records, subject, network, layer),
        }
        for subject in study.subjects
        for network in study.networks
        for place, layer in audits.places(subject, network)
    ]


def checks(rows: Sequence[Row]) -> list[Check]:
    """Ask whether the first fully connected layer has most V-information, and tells an attack most."""
    keys = ("data_set", "task", "property", "network")
    measures = {audits.V_INFORMATION: "V-information", audits.AUC: "Property AUC"}
    return [check for column, words in measures.items() for check in audits.check_places(rows, column, words, *keys)]


EXPERIMENT = Experiment(
    table="layers",
    keys=audits.KEYS,
    plans=plans,
    rows=rows,
    published=PUBLISHED,
    checks=checks,
    notes=lambda study: [SPREAD],
)
