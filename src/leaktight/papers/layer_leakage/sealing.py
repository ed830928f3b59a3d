"""Sealing: what still leaks once layers are hidden, one after the other. A table of our own."""

from __future__ import annotations

from collections.abc import Sequence

from leaktight.core.metric import Reading
from leaktight.papers.check import Check, at_most
from leaktight.papers.layer_leakage import audits, layers
from leaktight.papers.layer_leakage.networks import NETWORKS, layers_of
from leaktight.papers.layer_leakage.scales import Study, Subject
from leaktight.papers.paper import Experiment
from leaktight.papers.records import Records
from leaktight.papers.row import Row, groups, over_runs, over_seeds, reading_of, rows_where

REMAINING = "remaining_auc"
LITTLE = 0.6
"""The AUC that may remain where hiding layers is said to protect; a half is guessing."""
NOTE = (
    "The table `sealing` is ours: the paper ranks layers by what each tells alone and proposes to protect the first "
    "ones. Here layers are ordered, in each training run anew, by what gradients of the attacker's own tell without "
    "them, and messages are attacked by all that remains, or by the layer of it that tells most of held-out gradients "
    "of its own. Bytes are those of the sealed layers' parameters."
)


def rows(study: Study, records: Records) -> list[Row]:
    """Return a row for each network and number of sealed layers, from none on; orders may differ between runs."""
    return [
        {
            "data_set": subject.data_set,
            "task": subject.task,
            "property": subject.private,
            "network": network,
            "sealed": count,
            **_columns(records, subject, network, count),
        }
        for subject in study.subjects
        for network in study.networks
        for count in range(len(layers_of(NETWORKS[network])) + 1)
    ]


def checks(rows: Sequence[Row]) -> list[Check]:
    """Ask whether it protects to hide one layer, the best choice there is."""
    checks = []
    for place, own in groups(rows, "data_set", "task", "property", "network"):
        first = rows_where(own, sealed=1)[0]
        name = f"Property AUC of what remains with one sealed layer, {', '.join(place)}"
        checks.append(at_most(name, reading_of(first, REMAINING), LITTLE))
    return checks


def _columns(records: Records, subject: Subject, network: str, count: int) -> Row:
    runs = records.where(audits.audit_name(subject, audits.LEAK), label=audits.REST, model=NETWORKS[network]).done
    steps = [step for record in runs.by_seed().values() if (step := _step(record.readings, count)) is not None]
    return {
        "last": " or ".join(dict.fromkeys(layer for layer, _, _ in steps)) or None,
        **over_seeds("bytes_share", [share for _, share, _ in steps]),
        **over_runs(REMAINING, [remaining for _, _, remaining in steps]),
    }


def _step(readings: Sequence[Reading], count: int) -> tuple[str, float, Reading] | None:
    """Return which layer is sealed last, how large a share all of them are, and what remains."""
    found = {(reading.name, reading.layer): reading for reading in readings}
    if not count:
        whole = found.get((REMAINING, None))
        return None if whole is None else ("none", 0.0, whole)
    layer = next((at for (name, at), one in found.items() if name == "sealed_layers" and one.value == count), None)
    total = max((one.value for (name, _), one in found.items() if name == "sealed_bytes"), default=0.0)
    if layer is None or not total:
        return None
    return layer.rpartition(".")[2], found["sealed_bytes", layer].value / total, found[REMAINING, layer]


EXPERIMENT = Experiment(
    table="sealing",
    keys=("data_set", "task", "property", "network", "sealed"),
    plans=layers.plans,
    rows=rows,
    checks=checks,
    notes=lambda study: [NOTE],
)
