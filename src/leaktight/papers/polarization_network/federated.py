"""Federated training of larger networks: standalone, averaged and polarized, by number of clients (Fig. 7, 28, 29)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from leaktight.core.defence import Defence, Undefended
from leaktight.core.metric import Reading
from leaktight.core.record import Record
from leaktight.core.scenario import Scenario
from leaktight.data import Dirichlet, Equal
from leaktight.learning.federated import Federated
from leaktight.learning.optimiser import DecayedSgd, Optimiser, Sgd
from leaktight.learning.protocol import FedAvg
from leaktight.learning.standalone import Standalone
from leaktight.papers.check import Check, at_least
from leaktight.papers.comparison import difference, lowest, mean_of
from leaktight.papers.paper import Experiment, Plans
from leaktight.papers.polarization_network.audits import make_plan, steps_per_epoch
from leaktight.papers.polarization_network.mechanisms import federated_spn, gaussian, ppdl
from leaktight.papers.polarization_network.scales import Federation, Study
from leaktight.papers.records import Records, find_reading
from leaktight.papers.row import Row, claims, columns, number, reading_of, rows_where, value_at
from leaktight.probes import Utility

STANDALONE, AVERAGED, POLARIZED = "standalone", "FedAvg", "federated SPN"
PARTITIONS = {"IID": Equal(), "Dirichlet 0.9": Dirichlet(alpha=0.9)}
PUBLISHED = claims(
    ("FedAvg improves on standalone models by 2 to 4 points on MNIST and 10 to 40 on CIFAR10.", "4.3, Fig. 7"),
    ("SPN improves on FedAvg by 2 to 3 points on CIFAR10 and about 0.2 on MNIST.", "4.3, Fig. 7"),
    ("At a ratio of about 1, SPN 0.1 is 25 points above DP 0.1 with AlexNet on CIFAR10.", "Fig. 28"),
    ("On data that are not IID, SPN improves on FedAvg the more, the more clients there are.", "Fig. 29"),
)


def plans(studies: Sequence[Study]) -> Plans:
    """Train by federated averaging, plain and under the mechanisms of Fig. 28, and participants alone."""
    plans: Plans = {}
    for study in studies:
        for federation in study.federations:
            together, alone = _audits(study, federation)
            title = f"{study.name}: {federation.network.kind}"
            scenarios = _federations(study, federation)
            singly: dict[str, Scenario] = {
                name: Standalone(federation=scenario, sample=federation.sample) for name, scenario in scenarios.items()
            }
            probes = {"utility": Utility()}
            defences = [defence for name, defence in _trainings(federation).items() if name != AVERAGED]
            plans[together] = make_plan(
                f"{title}, federated averaging", dict(scenarios), defences, dict(probes), study.seed
            )
            plans[alone] = make_plan(f"{title}, standalone", singly, (), dict(probes), study.seed)
    return plans


def rows(studies: Sequence[Study], records: Records) -> list[Row]:
    """Return a row for each network, partition, number of clients and way of training."""
    order = list(PARTITIONS)
    return [
        row
        for study in studies
        for row in sorted(
            (row for federation in study.federations for row in _rows(study, federation, records)),
            key=lambda row: (row["network"], order.index(str(row["partition"])), number(row, "clients")),
        )
    ]


def checks(rows: Sequence[Row]) -> list[Check]:
    """Compare federated training with and without polarization: the mean over numbers of clients, and the worst."""
    gains: dict[tuple[str, ...], list[Reading]] = {}
    for row in rows_where(rows, training=POLARIZED):
        same: Row = {name: row[name] for name in ("data_set", "network", "partition", "clients")}
        gain = difference(reading_of(row, "accuracy"), value_at(rows, "accuracy", training=AVERAGED, **same))
        if gain is not None:
            gains.setdefault(tuple(str(row[name]) for name in ("data_set", "network", "partition")), []).append(gain)
    claim = "Accuracy(federated SPN) - Accuracy(FedAvg)"
    means = [at_least(f"{claim}, {', '.join(place)}", mean_of(each), -0.01) for place, each in gains.items()]
    worst = lowest([gain for each in gains.values() for gain in each])
    return [*means, at_least(f"{claim}, the worst of all", worst, -0.01)]


def _audits(study: Study, federation: Federation) -> tuple[str, str]:
    name = f"{study.name}-{federation.network.kind}"
    return f"{name}-federated", f"{name}-standalone"


def _trainings(federation: Federation) -> dict[str, Defence]:
    """Return the ways of federated training by name."""
    trainings: dict[str, Defence] = {AVERAGED: Undefended(), POLARIZED: federated_spn(federation.alpha2)}
    if federation.others:
        trainings |= {"Gaussian 0.1": gaussian(0.1), "PPDL-0.3": ppdl(0.3)(0.0), "PPDL-0.05": ppdl(0.05)(0.0)}
    return trainings


def _federations(study: Study, federation: Federation) -> Mapping[str, Federated]:
    """Return a federation for each partition and number of clients, by a name that says both."""
    return {
        f"{name}, {clients} clients": Federated(
            data=study.data,
            model=federation.network,
            partition=partition,
            participants=clients,
            protocol=FedAvg(
                optimiser=_sgd(federation),
                local_steps=federation.local_steps or steps_per_epoch(study, clients, federation.batch_size),
            ),
            rounds=federation.rounds,
            batch_size=federation.batch_size,
            device=study.device,
        )
        for name, partition in PARTITIONS.items()
        for clients in federation.clients
    }


def _sgd(federation: Federation) -> Optimiser:
    settings: dict[str, Any] = {"learning_rate": federation.learning_rate, "momentum": 0.9}
    return DecayedSgd(rounds=federation.halved, **settings) if federation.halved else Sgd(**settings)


def _rows(study: Study, federation: Federation, records: Records) -> list[Row]:
    names = {defence.key: name for name, defence in _trainings(federation).items()}
    together, alone = _audits(study, federation)
    return [
        {
            "data_set": study.name,
            "network": federation.network.kind,
            **_place(record),
            "training": training or names[record.cell.defence.key],
            **columns("accuracy", find_reading(record, "accuracy")),
        }
        for audit, training in ((alone, STANDALONE), (together, ""))
        for record in records.where(audit)
    ]


def _place(record: Record) -> Row:
    scenario = record.cell.scenario
    federation = cast("Federated", scenario.federation if isinstance(scenario, Standalone) else scenario)
    partition = next(name for name, partition in PARTITIONS.items() if partition == federation.partition)
    return {"partition": partition, "clients": federation.participants}


EXPERIMENT = Experiment(
    table="federated",
    keys=("data_set", "network", "partition", "clients", "training"),
    plans=plans,
    rows=rows,
    published=PUBLISHED,
    checks=checks,
)
