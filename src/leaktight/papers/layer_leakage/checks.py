"""Checks: what the paper claims, on our numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from leaktight.papers.estimate import Estimate, difference, mean_of
from leaktight.papers.layer_leakage.networks import CONVOLUTIONAL, first_linear
from leaktight.papers.layer_leakage.plans import FOREST, NETWORK
from leaktight.papers.layer_leakage.tables import ALL, AUC, V_INFORMATION
from leaktight.papers.reproduction import Check, Row, Tables, above, at_least, at_most, estimate, number, rows_where

STRONG, MODERATE, RISE = 0.9, 0.5, 0.01
"""A correlation that is very strong, and one that is at least moderate; how much information may rise from a layer to the next."""
Group = tuple[str, ...]


def checks_of(tables: Tables) -> list[Check]:
    """Return every claim that these tables can answer."""
    return [
        *_correlations(tables["correlation"]),
        *_mixed(tables["mixed"]),
        *_places(tables["layers"], V_INFORMATION, "V-information", ("data_set", "task", "property", "network")),
        *_places(tables["mixed"], V_INFORMATION, "V-information of mixed batches", ("data_set", "task", "property", "network")),
        *_places(tables["properties"], AUC, "Property AUC", ("data_set", "task", "property", "network")),
        *_places(tables["tasks"], "share", "Share of sensitivity", ("data_set", "task", "network")),
        *_classifiers(tables["classifiers"]),
        *_information(tables["mutual_information"]),
        *_inversion(tables["inversion"]),
    ]


def _correlations(rows: Sequence[Row]) -> list[Check]:
    """Ask for the correlations of Table 1: V-information with the attack everywhere, sensitivity where there are convolutions."""
    found = [
        at_least(f"R(V-information, property AUC), {_over(row)}", estimate(row, "r"), STRONG)
        for row in rows_where(rows, measure="V-information")
    ]
    for row in rows_where(rows, measure="sensitivity"):
        name = f"R(sensitivity, property AUC), {_over(row)}"
        if row["network"] in CONVOLUTIONAL:
            found.append(above(name, estimate(row, "r"), MODERATE))
        elif row["network"] != ALL:
            found.append(at_most(name, estimate(row, "r"), MODERATE))
    return found


def _mixed(rows: Sequence[Row]) -> list[Check]:
    """Ask for the same correlation where batches are mixed."""
    return [
        at_least(f"R(V-information, property AUC) of mixed batches, {network}", estimate(own[0], "r"), STRONG)
        for (network,), own in _groups(rows, ("network",))
    ]


def _over(row: Row) -> str:
    return "all networks" if row["network"] == ALL else str(row["network"])


def _places(rows: Sequence[Row], column: str, words: str, keys: Group) -> list[Check]:
    """Compare the best layer at or next to the first fully connected one with the best of all others, where there are convolutions."""
    found = []
    for where, own in _groups(rows, keys):
        if where[-1] not in CONVOLUTIONAL:
            continue
        first = first_linear(where[-1])
        near, far = (
            [estimate(row, column) for row in own if (abs((number(row, "layer") or 0) - first) <= 1) is close]
            for close in (True, False)
        )
        name = f"{words}(best layer at or next to the first linear one) - {words}(best other layer), {', '.join(where)}"
        found.append(above(name, difference(_largest(near), _largest(far)), 0))
    return found


def _classifiers(rows: Sequence[Row]) -> list[Check]:
    """Compare both attackers by their mean over layers."""
    found = []
    for where, own in _groups(rows, ("data_set", "task", "property", "network")):
        means = [mean_of([estimate(row, AUC) for row in rows_where(own, classifier=name)]) for name in (FOREST, NETWORK)]
        name = f"Property AUC({FOREST}) - property AUC({NETWORK}), mean over layers, {', '.join(where)}"
        found.append(at_least(name, difference(*means), 0))
    return found


def _information(rows: Sequence[Row]) -> list[Check]:
    """Ask whether the information about the input falls from the first layer to the last, and never rises on the way."""
    found = []
    for where, own in _groups(rows, ("data_set", "task", "network")):
        shares = [estimate(row, "upper_share") for row in own]
        name = f"Mutual information as a share, upper bound, {', '.join(where)}"
        found.append(above(f"{name}: first layer - last layer", difference(shares[0], shares[-1]), 0))
        rises = [difference(after, before) for before, after in pairwise(shares)]
        found.append(at_most(f"{name}: largest rise from a layer to the next", _largest(rises), RISE))
    return found


def _inversion(rows: Sequence[Row]) -> list[Check]:
    """Compare the first layer with every other one alone, and sets of layers with and without it."""
    found = []
    for (data_set,), own in _groups(rows, ("data_set",)):
        errors = {str(row["layers"]): estimate(row, "rmse_relative") for row in own}
        others = [error for layers, error in errors.items() if "-" not in layers and layers != "1"]
        name = f"rMSE(best other layer alone) - rMSE(first layer alone), {data_set}"
        found.append(above(name, difference(_smallest(others), errors.get("1")), 0))
        for layers in (layers for layers in errors if layers.startswith("2-")):
            with_first = f"1{layers[1:]}"
            name = f"rMSE(layers {layers}) - rMSE(layers {with_first}), {data_set}"
            found.append(above(name, difference(errors[layers], errors.get(with_first)), 0))
    return found


def _groups(rows: Sequence[Row], keys: Group) -> Iterable[tuple[Group, list[Row]]]:
    """Give the rows that agree in some columns together, with what they agree in."""
    for where in dict.fromkeys(tuple(str(row[key]) for key in keys) for row in rows):
        yield where, [row for row in rows if tuple(str(row[key]) for key in keys) == where]


def _largest(estimates: Sequence[Estimate | None]) -> Estimate | None:
    known = [one for one in estimates if one is not None]
    return max(known, key=lambda one: one.value) if known and len(known) == len(estimates) else None


def _smallest(estimates: Sequence[Estimate | None]) -> Estimate | None:
    known = [one for one in estimates if one is not None]
    return min(known, key=lambda one: one.value) if known and len(known) == len(estimates) else None
