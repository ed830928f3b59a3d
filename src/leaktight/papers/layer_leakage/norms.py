"""Sensitivity by three norms, and how well each predicts the attack (Fig. 4)."""

from __future__ import annotations

from leaktight.papers.correlation import correlation_columns, of_columns
from leaktight.papers.layer_leakage import layers
from leaktight.papers.layer_leakage.audits import AUC, JACOBIAN, KEYS, NORMS, places, sensitivity_columns
from leaktight.papers.layer_leakage.scales import Study
from leaktight.papers.paper import Experiment
from leaktight.papers.records import Records
from leaktight.papers.row import Row, claims, rows_where

PUBLISHED = claims(
    ("All norms have similar patterns: the more sensitive part is after the last convolution.", "6.2, Fig. 4"),
    ("With AlexNet and VGG11Net R is moderate or strong, with p-values below 0.006.", "6.2, Fig. 4"),
)


def rows(study: Study, records: Records) -> list[Row]:
    """Return a row for each layer and norm, with the correlation over the layers of all subjects."""
    attacked = layers.rows(study, records)
    rows: list[Row] = []
    for network in study.networks:
        for norm, name in NORMS.items():
            measured: list[Row] = [
                {**place, "norm": norm, **sensitivity_columns(records, subject, network, layer, name)}
                for subject in study.subjects
                for place, layer in places(subject, network)
            ]
            pairs = zip(measured, rows_where(attacked, network=network), strict=True)
            both: list[Row] = [{**row, AUC: other[AUC]} for row, other in pairs]
            correlation = correlation_columns(of_columns(both, JACOBIAN, AUC))
            rows += [{**row, **{name: correlation[name] for name in ("r", "r_low", "r_high", "p")}} for row in measured]
    return rows


EXPERIMENT = Experiment(table="norms", keys=(*KEYS, "norm"), plans=layers.plans, rows=rows, published=PUBLISHED)
