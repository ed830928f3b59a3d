"""Checks: what the paper claims, on our numbers."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from leaktight.papers.polarization_network.federations import AVERAGED, POLARIZED
from leaktight.papers.polarization_network.mechanisms import (
    ADAPTIVE_SPN,
    GAUSSIAN,
    LAPLACE,
    PPDL_05,
    PPDL_30,
    SPN,
)
from leaktight.papers.reproduction import Check, Row, Tables, above, at_least, number, rows_where

FOCUS = "CIFAR10"
"""The data set that the claims are about, where it was measured."""


def checks_of(tables: Tables) -> list[Check]:
    """Return every claim that these tables can answer."""
    focus = _focus(tables["cap"])
    return [
        *(_cap_above(tables["cap"], focus, SPN, other) for other in (GAUSSIAN, PPDL_05, PPDL_30)),
        _kept_accuracy(tables["ppc"], focus),
        *(_cap_above(tables["cap"], focus, ADAPTIVE_SPN, other) for other in (GAUSSIAN, PPDL_05, PPDL_30)),
        *_federated(tables["federated"]),
        _bits(tables["bits"], focus),
        _laplace(tables["laplace"], focus),
    ]


def _focus(rows: Sequence[Row]) -> str:
    names = [str(row["data_set"]) for row in rows]
    return FOCUS if FOCUS in names else names[0]


def _cap_above(rows: Sequence[Row], focus: str, one: str, other: str) -> Check:
    """Compare two mechanisms under reconstruction at batch 1; the value is the difference."""
    at: Row = {"data_set": focus, "attack": "reconstruction", "batch_size": 1}
    values = [_only(rows_where(rows, mechanism=name, **at), "cap") for name in (one, other)]
    return above(f"CAP({one}) - CAP({other}), reconstruction, batch 1, {focus}", _difference(*values), 0)


def _kept_accuracy(rows: Sequence[Row], focus: str) -> Check:
    """Compare mean accuracies over the strengths at which the perturbation exceeds the gradient."""
    means = []
    for mechanism in (SPN, GAUSSIAN):
        green = rows_where(rows, data_set=focus, mechanism=mechanism, batch_size=1, region="green")
        values = [value for row in green if (value := number(row, "accuracy")) is not None]
        means.append(fmean(values) if values else None)
    return at_least(f"Accuracy(SPN) - Accuracy(Gaussian) where the ratio is below 1, {focus}", _difference(*means), 0.1)


def _federated(rows: Sequence[Row]) -> list[Check]:
    """Compare federated training with and without polarization: the mean over numbers of clients, and the worst of all."""
    found: dict[tuple[str, ...], list[float]] = {}
    for row in rows_where(rows, training=POLARIZED):
        same: Row = {name: row[name] for name in ("data_set", "network", "partition", "clients")}
        plain = _only(rows_where(rows, training=AVERAGED, **same), "accuracy")
        difference = _difference(number(row, "accuracy"), plain)
        if difference is not None:
            found.setdefault(tuple(str(row[name]) for name in ("data_set", "network", "partition")), []).append(difference)
    claim = "Accuracy(federated SPN) - Accuracy(FedAvg)"
    means = [at_least(f"{claim}, {', '.join(where)}", fmean(values), -0.01) for where, values in found.items()]
    worst = min((value for values in found.values() for value in values), default=None)
    return [*means, at_least(f"{claim}, the worst of all", worst, -0.01)]


def _bits(rows: Sequence[Row], focus: str) -> Check:
    """Compare the mean error of the longest and the shortest code."""
    own = rows_where(rows, data_set=focus)
    lengths = sorted({int(value) for row in own if (value := number(row, "bits")) is not None})
    means = [_mean(rows_where(own, bits=bits)) for bits in (lengths[-1], lengths[0])] if lengths else [None, None]
    ends = f"{lengths[-1]} bits) - rMSE({lengths[0]} bits)" if lengths else "longest) - rMSE(shortest)"
    return above(f"rMSE({ends}, batch 1, {focus}", _difference(*means), 0)


def _laplace(rows: Sequence[Row], focus: str) -> Check:
    """Compare the mean errors under both kinds of noise; the paper says that they are almost the same."""
    means = [_mean(rows_where(rows, data_set=focus, noise=noise)) for noise in (LAPLACE, GAUSSIAN)]
    value = _difference(*means)
    return Check(
        name=f"rMSE(Laplace) - rMSE(Gaussian), batch 1, {focus}",
        value=value,
        expected="between -0.1 and 0.1",
        holds=value is not None and abs(value) <= 0.1,
    )


def _mean(rows: Sequence[Row]) -> float | None:
    values = [number(row, "reconstruction") for row in rows]
    known = [value for value in values if value is not None]
    return fmean(known) if known and len(known) == len(values) else None


def _only(rows: Sequence[Row], column: str) -> float | None:
    return number(rows[0], column) if rows else None


def _difference(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one - other
