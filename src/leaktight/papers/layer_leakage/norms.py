"""Sensitivity by three norms, and how well each predicts the attack (Fig. 4)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from leaktight.papers.correlation import correlation_columns, of_columns
from leaktight.papers.layer_leakage import layers
from leaktight.papers.layer_leakage.audits import AUC, JACOBIAN, KEYS, NORMS, layer_sizes, places, sensitivity_columns
from leaktight.papers.layer_leakage.scales import Study
from leaktight.papers.paper import Experiment
from leaktight.papers.records import Records
from leaktight.papers.row import Row, claims, number, rows_where

UNSCALED, SIZE = "F, without its size factor", "number of parameters"
NOTE = (
    "Sensitivity may follow the size of a layer in place of what it tells: in trials before these runs, on networks "
    "with layers of unlike sizes, it fell with the size and ran against the attack, and without its size factor it "
    "grew with the size. Both, and the number of parameters alone, are in the table `norms` with their correlations, "
    "the number in the column of the sensitivity."
)
PUBLISHED = claims(
    ("All norms have similar patterns: the more sensitive part is after the last convolution.", "6.2, Fig. 4"),
    ("With AlexNet and VGG11Net R is moderate or strong, with p-values below 0.006.", "6.2, Fig. 4"),
)


def rows(study: Study, records: Records) -> list[Row]:
    """Return a row for each layer and norm, with the correlation over the layers of all subjects."""
    attacked = layers.rows(study, records)
    rows: list[Row] = []
    for network in study.networks:
        others = rows_where(attacked, network=network)
        for norm, name in NORMS.items():
            measured: list[Row] = [
                {**place, "norm": norm, **sensitivity_columns(records, subject, network, layer, name)}
                for subject in study.subjects
                for place, layer in places(subject, network)
            ]
            rows += _with_correlation(measured, others)
            if norm == "F":
                sizes = [
                    layer_sizes(records, subject, network).get(layer, 0)
                    for subject in study.subjects
                    for _, layer in places(subject, network)
                ]
                plain = [_unscaled(row, size) for row, size in zip(measured, sizes, strict=True)]
                by_size: list[Row] = [
                    {
                        **row,
                        "norm": SIZE,
                        JACOBIAN: float(size) or None,
                        f"{JACOBIAN}_low": None,
                        f"{JACOBIAN}_high": None,
                    }
                    for row, size in zip(measured, sizes, strict=True)
                ]
                rows += _with_correlation(plain, others) + _with_correlation(by_size, others)
    return rows


def _unscaled(row: Row, size: int) -> Row:
    """Return a row whose sensitivity by the Frobenius norm is not divided by the root of the layer's size."""
    values = {name: number(row, name) for name in (JACOBIAN, f"{JACOBIAN}_low", f"{JACOBIAN}_high")}
    scaled = {name: None if value is None or not size else value * math.sqrt(size) for name, value in values.items()}
    return {**row, **scaled, "norm": UNSCALED}


def _with_correlation(measured: Sequence[Row], attacked: Sequence[Row]) -> list[Row]:
    both: list[Row] = [{**row, AUC: other[AUC]} for row, other in zip(measured, attacked, strict=True)]
    correlation = correlation_columns(of_columns(both, JACOBIAN, AUC))
    return [{**row, **{name: correlation[name] for name in ("r", "r_low", "r_high", "p")}} for row in measured]


EXPERIMENT = Experiment(
    table="norms", keys=(*KEYS, "norm"), plans=layers.plans, rows=rows, published=PUBLISHED, notes=lambda study: [NOTE]
)
