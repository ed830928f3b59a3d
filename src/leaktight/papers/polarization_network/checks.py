"""Checks: what the paper claims, on our numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from leaktight.papers.estimate import Estimate, difference, largest, mean_of, relative
from leaktight.papers.polarization_network.federations import AVERAGED, POLARIZED
from leaktight.papers.polarization_network.mechanisms import (
    GAUSSIAN,
    LAPLACE,
    PPDL_05,
    PPDL_30,
    SPN,
    against_adaptive,
)
from leaktight.papers.polarization_network.plans import LABELS
from leaktight.papers.reproduction import Check, Row, Tables, above, at_least, estimate, number, rows_where, within

FOCUS = "CIFAR10"
"""The data set that the claims are about, where it was measured."""
HIDDEN = 0.3
"""The share of labels that stay hidden under SPN: its published CAPs under membership, by its accuracies, are 0.35 and more."""
Compare = Callable[[Estimate | None, Estimate | None], Estimate | None]


def checks_of(tables: Tables) -> list[Check]:
    """Return every claim that these tables can answer."""
    focus = _focus(tables["cap"])
    return [
        *(_cap_above(tables["cap"], focus, SPN, other) for other in (GAUSSIAN, PPDL_05, PPDL_30)),
        _kept_accuracy(tables["ppc"], focus),
        *(
            _cap_above(tables["cap"], focus, against_adaptive(SPN), other)
            for other in (GAUSSIAN, against_adaptive(PPDL_05), against_adaptive(PPDL_30))
        ),
        *_membership(tables["ppc"], focus),
        *_federated(tables["federated"]),
        *_bits(rows_where(tables["bits"], data_set=focus), focus),
        *_laplace(rows_where(tables["laplace"], data_set=focus), focus),
    ]


def _focus(rows: Sequence[Row]) -> str:
    names = [str(row["data_set"]) for row in rows]
    return FOCUS if FOCUS in names else names[0]


def _cap_above(rows: Sequence[Row], focus: str, one: str, other: str) -> Check:
    """Compare two mechanisms under reconstruction at batch 1; the value is the difference."""
    at: Row = {"data_set": focus, "attack": "reconstruction", "batch_size": 1}
    values = [_only(rows_where(rows, mechanism=name, **at), "cap") for name in (one, other)]
    return above(f"CAP({one}) - CAP({other}), reconstruction, batch 1, {focus}", difference(*values), 0)


def _kept_accuracy(rows: Sequence[Row], focus: str) -> Check:
    """Compare mean accuracies over the strengths at which the perturbation exceeds the gradient."""
    means = []
    for mechanism in (SPN, GAUSSIAN):
        green = rows_where(rows, data_set=focus, mechanism=mechanism, batch_size=1, region="green")
        means.append(mean_of([found for row in green if (found := estimate(row, "accuracy"))]))
    return at_least(f"Accuracy(SPN) - Accuracy(Gaussian) where the ratio is below 1, {focus}", difference(*means), 0.1)


def _membership(rows: Sequence[Row], focus: str) -> list[Check]:
    """See whether polarization keeps labels from who reads them off the public head, as its CAPs under membership say."""
    own = rows_where(rows, data_set=focus, mechanism=SPN)
    return [
        at_least(
            f"Membership distance(SPN) of label reading, mean over strengths, batch {size}, {focus}",
            mean_of([estimate(row, LABELS) for row in rows_where(own, batch_size=size)]),
            HIDDEN,
        )
        for size in dict.fromkeys(row["batch_size"] for row in own)
    ]


def _federated(rows: Sequence[Row]) -> list[Check]:
    """Compare federated training with and without polarization: the mean over numbers of clients, and the worst of all."""
    found: dict[tuple[str, ...], list[Estimate]] = {}
    for row in rows_where(rows, training=POLARIZED):
        same: Row = {name: row[name] for name in ("data_set", "network", "partition", "clients")}
        gain = difference(estimate(row, "accuracy"), _only(rows_where(rows, training=AVERAGED, **same), "accuracy"))
        if gain is not None:
            found.setdefault(tuple(str(row[name]) for name in ("data_set", "network", "partition")), []).append(gain)
    claim = "Accuracy(federated SPN) - Accuracy(FedAvg)"
    means = [at_least(f"{claim}, {', '.join(where)}", mean_of(gains), -0.01) for where, gains in found.items()]
    every = [gain for gains in found.values() for gain in gains]
    worst = min(every, key=lambda gain: gain.value, default=None)
    return [*means, at_least(f"{claim}, the worst of all", worst, -0.01)]


def _bits(rows: Sequence[Row], focus: str) -> list[Check]:
    """Compare error and ratio of the longest and the shortest code, at the strength at which they differ most."""
    lengths = sorted({int(value) for row in rows if (value := number(row, "bits")) is not None}) or [0]
    long, short = (rows_where(rows, bits=bits) for bits in (lengths[-1], lengths[0]))
    where = f"at the strength where they differ most, batch 1, {focus}"
    ends = f"{lengths[-1]} bits", f"{lengths[0]} bits"
    return [
        above(f"rMSE({ends[0]}) - rMSE({ends[1]}) {where}", largest(_pairs(long, short, "reconstruction", difference)), 0),
        above(f"Ratio({ends[0]}) / ratio({ends[1]}) - 1 {where}", largest(_pairs(long, short, "ratio", relative)), 0),
    ]


def _laplace(rows: Sequence[Row], focus: str) -> list[Check]:
    """Compare error and ratio under both kinds of noise at each scale; the paper says that they are almost the same."""
    one, other = (rows_where(rows, noise=noise) for noise in (LAPLACE, GAUSSIAN))
    where = f"at the scale where they differ most, batch 1, {focus}"
    errors, ratios = _pairs(one, other, "reconstruction", difference), _pairs(one, other, "ratio", relative)
    return [
        within(f"rMSE(Laplace) - rMSE(Gaussian) {where}", largest(errors), 0.1),
        within(f"Ratio(Laplace) / ratio(Gaussian) - 1 {where}", largest(ratios), 0.1),
    ]


def _pairs(ones: Sequence[Row], others: Sequence[Row], column: str, compare: Compare) -> list[Estimate | None]:
    """Compare a column of two settings at each strength."""
    return [compare(estimate(row, column), _only(rows_where(others, strength=row["strength"]), column)) for row in ones]


def _only(rows: Sequence[Row], column: str) -> Estimate | None:
    return estimate(rows[0], column) if rows else None
