"""The federated table: standalone, averaged and polarized training over numbers of clients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from leaktight.core.defence import Defence, Undefended
from leaktight.core.record import Record
from leaktight.learning.federated import Federated
from leaktight.learning.standalone import Standalone
from leaktight.papers.paper import Records
from leaktight.papers.polarization_network.mechanisms import federated_spn, gaussian, ppdl
from leaktight.papers.polarization_network.plans import PARTITIONS
from leaktight.papers.polarization_network.settings import Federation, Study
from leaktight.papers.reproduction import Row, columns, number

STANDALONE, AVERAGED, POLARIZED = "standalone", "FedAvg", "federated SPN"


def federated_rows(study: Study, records: Records) -> list[Row]:
    """Return a row for each network, partition, number of clients and way of training (Fig. 7, 28, 29)."""
    rows = []
    for federation in study.federations:
        name = f"{study.name}-{federation.network.kind}"
        measured = [*records[f"{name}-standalone"], *records[f"{name}-federated"]]
        rows += [_row(study, federation, _names(federation), record) for record in measured if record.cell.purpose == "measure"]
    order = list(PARTITIONS)
    return sorted(rows, key=lambda row: (row["network"], order.index(str(row["partition"])), number(row, "clients")))


def _names(federation: Federation) -> Mapping[str, str]:
    defences: dict[str, Defence] = {
        AVERAGED: Undefended(),
        POLARIZED: federated_spn(federation.alpha2),
        "Gaussian 0.1": gaussian(0.1),
        "PPDL-0.3": ppdl(0.3)(0.0),
        "PPDL-0.05": ppdl(0.05)(0.0),
    }
    return {defence.key: name for name, defence in defences.items()}


def _row(study: Study, federation: Federation, names: Mapping[str, str], record: Record) -> Row:
    cell = record.cell
    alone = isinstance(cell.scenario, Standalone)
    scenario = cast("Federated", cell.scenario.federation if isinstance(cell.scenario, Standalone) else cell.scenario)
    return {
        "data_set": study.name,
        "network": federation.network.kind,
        "partition": next(name for name, dealt in PARTITIONS.items() if dealt == scenario.partition),
        "clients": scenario.participants,
        "training": STANDALONE if alone else names[cell.defence.key],
        **columns("accuracy", record.reading("accuracy")),
    }
