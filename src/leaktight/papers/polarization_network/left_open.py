"""What polarization leaves open: labels, features of single examples, and linear first layers. A table of our own."""

from __future__ import annotations

from collections.abc import Sequence

from leaktight.attacks.analytic import Analytic
from leaktight.core.probe import Attempt, Probe
from leaktight.learning.federated import Federated
from leaktight.models.mlp import MLP
from leaktight.papers.check import Check, at_most
from leaktight.papers.paper import Experiment, Plans
from leaktight.papers.polarization_network import audits
from leaktight.papers.polarization_network.mechanisms import spn
from leaktight.papers.polarization_network.scales import PARTICIPANTS, Study
from leaktight.papers.records import Records
from leaktight.papers.row import Row, columns, number, rows_where
from leaktight.probes import HeadFeatures

STRENGTHS = (0.1, 1.0, 100.0)
"""Of the polarization: the paper's for federations, and far beyond."""
IMAGES, FEATURES, LABELS = "images behind a linear first layer", "features of single examples", "labels"
READINGS = {
    IMAGES: ("analytic", "rmse_relative"),
    FEATURES: ("features", "head_features"),
    LABELS: ("labels", "label_distance"),
}
MOST = {IMAGES: 0.01, FEATURES: 0.01, LABELS: 0.0}
"""Up to which error something is taken to be read exactly."""
NOTE = (
    "What polarization leaves open is read without any search, at strengths far beyond the paper's: an error of 0 is "
    "exact. These checks hold where the defence's docstring is right about what it does not do. They are of the "
    "messages that were read: no interval for others would end at exactly 0."
)


def plans(studies: Sequence[Study]) -> Plans:
    """Read single gradients of DLNet, and of a network whose first layer is linear."""
    found: Plans = {}
    for study in studies:
        dlnet = audits.initial_federation(study)
        linear = Federated.model_validate({**dict(dlnet), "model": MLP()})
        probes: dict[str, tuple[Federated, dict[str, Probe]]] = {
            _audit(study, "linear"): (linear, {"analytic": Attempt(attack=Analytic(), metrics=audits.METRICS)}),
            _audit(study, "head"): (
                dlnet,
                {"features": HeadFeatures(), "labels": Attempt(attack=audits.LABELS_READ, metrics=audits.METRICS)},
            ),
        }
        for name, (scenario, tried) in probes.items():
            found[name] = audits.make_plan(
                f"{study.name}: left open",
                {"one gradient": scenario},
                [spn(alpha2) for alpha2 in STRENGTHS],
                tried,
                audits.seeds_of(study),
                victims=PARTICIPANTS,
            )
    return found


def rows(studies: Sequence[Study], records: Records) -> list[Row]:
    """Return a row for each thing that is left open, and each strength."""
    return [
        {
            "data_set": study.name,
            "left_open": what,
            "strength": alpha2,
            **columns(
                "error",
                audits.mean_over_seeds(
                    records.where(
                        _audit(study, "linear" if what == IMAGES else "head"), label=label, defence=spn(alpha2)
                    ),
                    reading,
                    optional=True,
                ),
            ),
        }
        for study in studies
        for what, (label, reading) in READINGS.items()
        for alpha2 in STRENGTHS
    ]


def checks(rows: Sequence[Row]) -> list[Check]:
    """Ask whether each of them was read exactly at every strength, of all messages that were tried."""
    focus = audits.focus_of(rows)
    return [
        at_most(
            f"Left open by SPN: error of {what}, the worst of alpha2 {', '.join(f'{a:g}' for a in STRENGTHS)}, {focus}",
            _largest([number(row, "error") for row in rows_where(rows, data_set=focus, left_open=what)]),
            MOST[what],
        )
        for what in READINGS
    ]


def _largest(errors: Sequence[float | None]) -> float | None:
    """Return the largest number; None with a gap, or of nothing."""
    return None if None in errors else max((error for error in errors if error is not None), default=None)


def _audit(study: Study, part: str) -> str:
    return f"{study.name}-open-{part}"


EXPERIMENT = Experiment(
    table="left_open",
    keys=("data_set", "left_open", "strength"),
    plans=plans,
    rows=rows,
    checks=checks,
    notes=lambda studies: [NOTE],
)
