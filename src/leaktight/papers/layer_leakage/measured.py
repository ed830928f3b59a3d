"""What was measured: the records of a study, looked up by subject, network, probe and layer, seed by seed."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from leaktight.core.metric import Reading
from leaktight.core.record import Record
from leaktight.learning.federated import Federated
from leaktight.papers.layer_leakage.networks import NETWORKS
from leaktight.papers.layer_leakage.plans import folder
from leaktight.papers.layer_leakage.settings import Study, Subject
from leaktight.papers.paper import Records
from leaktight.papers.reproduction import Row, columns, over_seeds

Readings = Mapping[int, Reading]
"""A reading for each seed that has it."""


@dataclasses.dataclass(frozen=True)
class Measured:
    """The records of a study.

    Args:
        study: what was planned.
        records: what came of it, by the name of the audit.
    """

    study: Study
    records: Records

    def readings(self, subject: Subject, part: str, network: str, probe: str, name: str, layer: str | None = None) -> Readings:
        """Return a probe's reading of a layer for each seed that has it.

        Args:
            subject: what was learned and what was private.
            part: which of its audits.
            network: on which network, by name.
            probe: by its label in the plan.
            name: the reading's.
            layer: as messages name it; None for a reading without one.
        """
        found = {}
        for record in self.records.get(folder(subject, part), ()):
            if _is(record, network, probe):
                here = [one for one in record.readings if (one.name, one.layer) == (name, layer)]
                if here:
                    found[record.cell.seed] = here[0]
        return found

    def accuracy(self, subject: Subject, part: str, network: str, probe: str) -> Readings:
        """Return the test accuracy of the task for each seed."""
        return self.readings(subject, part, network, probe, "accuracy")


def told(name: str, readings: Readings) -> Row:
    """Return three columns: the mean over seeds with its interval over them; of one seed alone, its reading with the reading's own.

    Example:
        >>> told("auc", {0: Reading(name="property_auc", value=0.75, low=0.5, high=1.0)})
        {'auc': 0.75, 'auc_low': 0.5, 'auc_high': 1.0}
        >>> told("auc", {seed: Reading(name="property_auc", value=0.75) for seed in (0, 1)})
        {'auc': 0.75, 'auc_low': 0.75, 'auc_high': 0.75}
    """
    found = list(readings.values())
    return columns(name, found[0]) if len(found) == 1 else over_seeds(name, [one.value for one in found])


def _is(record: Record, network: str, probe: str) -> bool:
    cell = record.cell
    return (
        cell.purpose == "measure"
        and cell.label == probe
        and isinstance(cell.scenario, Federated)
        and cell.scenario.model == NETWORKS[network]
    )
