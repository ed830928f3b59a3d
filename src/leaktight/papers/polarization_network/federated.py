"""Federated training of larger networks: standalone, averaged and polarized, by number of clients (Fig. 7, 28, 29).

Accuracies are means of the last rounds over several seeds; those of two ways of training are compared on the same test
images.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from leaktight.core.defence import Defence, Undefended
from leaktight.core.metric import Reading
from leaktight.core.record import Record
from leaktight.core.scenario import Scenario
from leaktight.data import Dirichlet, Equal
from leaktight.data.files import ImageSource
from leaktight.data.source import Source
from leaktight.findings.utility import price_of
from leaktight.learning.federated import Federated
from leaktight.learning.optimiser import DecayedSgd, Optimiser, Sgd
from leaktight.learning.protocol import FedAvg
from leaktight.learning.standalone import Standalone
from leaktight.papers.check import Check, above, at_least
from leaktight.papers.comparison import lowest
from leaktight.papers.paper import Experiment, Plans
from leaktight.papers.polarization_network.audits import make_plan, steps_per_epoch
from leaktight.papers.polarization_network.mechanisms import federated_spn, gaussian, ppdl
from leaktight.papers.polarization_network.scales import Federation, Study
from leaktight.papers.records import Records, find_reading
from leaktight.papers.row import Row, claims, columns, number, over_runs, reading_of, rows_where
from leaktight.probes import Utility

STANDALONE, AVERAGED, POLARIZED = "standalone", "FedAvg", "federated SPN"
GAIN = "gain"
_GAINING = (POLARIZED, "Gaussian 0.1", "PPDL-0.3", "PPDL-0.05")
"""The ways of training that are compared with averaging, on the same test images."""
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
            seeds = tuple(range(study.seed, study.seed + federation.seeds))
            defences = [defence for name, defence in _trainings(federation).items() if name != AVERAGED]
            plans[together] = make_plan(f"{title}, federated averaging", dict(scenarios), defences, dict(probes), seeds)
            plans[alone] = make_plan(f"{title}, standalone", singly, (), dict(probes), seeds)
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
    """Compare federated training with and without polarization: at each number of clients, and the worst."""
    polarized = rows_where(rows, training=POLARIZED)
    gains = {
        f"{row['data_set']}, {row['network']}, {row['partition']}, {row['clients']} clients": reading_of(row, GAIN)
        for row in polarized
    }
    claim = "Accuracy(federated SPN) - Accuracy(FedAvg)"
    each = [above(f"{claim}, {place}", gain, 0) for place, gain in gains.items()]
    return [*each, at_least(f"{claim}, the worst of all", lowest(list(gains.values())), -0.01)]


def notes(studies: Sequence[Study]) -> list[str]:
    """Say what an accuracy is a mean of, and how two are compared."""
    return [
        f"Federated training on {study.name}: {federation.per_client or 'all'} images a client, "
        f"{federation.rounds} rounds, the mean of the last {federation.averaged} rounds over {federation.seeds} seeds. "
        "The gain of SPN over FedAvg is paired on the test images; its interval counts images and training runs."
        for study in studies
        for federation in study.federations
    ]


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
            data=_data(study, federation, clients),
            model=federation.network,
            partition=partition,
            participants=clients,
            protocol=FedAvg(
                optimiser=_sgd(federation),
                local_steps=federation.local_steps or _steps(study, federation, clients),
            ),
            rounds=federation.rounds,
            averaged=min(federation.averaged, federation.rounds),
            batch_size=federation.batch_size,
            device=study.device,
        )
        for name, partition in PARTITIONS.items()
        for clients in federation.clients
    }


def _data(study: Study, federation: Federation, clients: int) -> Source:
    """Return the data of a federation, with so many images for each client, where files can be limited."""
    if federation.per_client is None or not isinstance(study.data, ImageSource):
        return study.data
    most = study.data.train_limit
    wanted = federation.per_client * clients
    return study.data.model_copy(update={"train_limit": wanted if most is None else min(wanted, most)})


def _steps(study: Study, federation: Federation, clients: int) -> int:
    """Return the local steps of one epoch."""
    if federation.per_client is not None and isinstance(study.data, ImageSource):
        return max(1, federation.per_client // federation.batch_size)
    return steps_per_epoch(study, clients, federation.batch_size)


def _sgd(federation: Federation) -> Optimiser:
    settings: dict[str, Any] = {"learning_rate": federation.learning_rate, "momentum": 0.9}
    return DecayedSgd(rounds=federation.halved, **settings) if federation.halved else Sgd(**settings)


def _rows(study: Study, federation: Federation, records: Records) -> list[Row]:
    names = {defence.key: name for name, defence in _trainings(federation).items()}
    together, alone = _audits(study, federation)
    rows: list[Row] = []
    for audit, training in ((alone, STANDALONE), (together, "")):
        for group in _groups(records.where(audit)):
            name = training or names[group[0].cell.defence.key]
            readings = [reading for record in group if (reading := find_reading(record, "accuracy")) is not None]
            # A mean over fewer seeds would be another number.
            whole = readings if len(readings) == len(group) else []
            rows.append(
                {
                    "data_set": study.name,
                    "network": federation.network.kind,
                    **_place(group[0]),
                    "training": name,
                    **over_runs("accuracy", whole),
                    **columns(GAIN, _gain(records.where(audit), group, whole) if name in _GAINING else None),
                    "seeds": len(whole),
                }
            )
    return rows


def _groups(records: Records) -> list[list[Record]]:
    """Return the records that differ in their seeds alone together."""
    groups: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        groups.setdefault((record.cell.scenario.key, record.cell.defence.key), []).append(record)
    return list(groups.values())


def _gain(records: Records, group: Sequence[Record], readings: Sequence[Reading]) -> Reading | None:
    """Return by how much accuracies exceed those of averaging without a defence, paired on seeds and test images."""
    plain = records.where(scenario=group[0].cell.scenario, defence=Undefended()).readings("accuracy", optional=True)
    seeds = [record.cell.seed for record in group]
    if len(readings) < len(group) or not set(seeds) <= plain.keys():
        return None
    trainings = [(plain[seed], own) for seed, own in zip(seeds, readings, strict=True)]
    loss = price_of(trainings)
    low, high = (None if end is None else -end for end in (loss.high, loss.low))
    return Reading(name=GAIN, value=-loss.value, low=low, high=high, n=loss.n)


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
    notes=notes,
)
