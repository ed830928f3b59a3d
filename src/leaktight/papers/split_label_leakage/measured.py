"""What was measured: the records of one study, looked up by defence, attack and layer, seed by seed."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from leaktight.core.defence import Defence
from leaktight.core.metric import Reading
from leaktight.core.record import Record
from leaktight.papers.paper import Records
from leaktight.papers.split_label_leakage.mechanisms import NORM, defences
from leaktight.papers.split_label_leakage.plans import DISTRIBUTIONS, LEAK, STEPS, folder
from leaktight.papers.split_label_leakage.settings import Study

BySeed = Mapping[int, float]


@dataclasses.dataclass(frozen=True)
class Measured:
    """The records of one study.

    Args:
        study: what was planned.
        distributions: the records behind Fig. 1.
        leak: those behind Fig. 2.
        steps: those behind the choice of the number of steps.
    """

    study: Study
    distributions: Sequence[Record]
    leak: Sequence[Record]
    steps: Sequence[Record]

    @classmethod
    def of(cls, study: Study, records: Records) -> Measured:
        """Pick a study's records by the names of its plans; null views are left to the report."""
        parts = (records.get(folder(study, part), ()) for part in (DISTRIBUTIONS, LEAK, STEPS))
        return cls(study, *([record for record in part if record.cell.purpose == "measure"] for part in parts))

    @property
    def defences(self) -> dict[str, Defence]:
        """Everything that was compared, by name."""
        return defences(self.study.bounds, self.study.ratios)

    def readings(self, defence: str, attack: str, name: str, layer: str | None = None) -> dict[int, Reading]:
        """Return a reading of an attack on a defence for each seed that has it; None stands for the cut layer."""
        wanted = self.defences[defence]
        found = {}
        for record in self.leak:
            if (record.cell.defence, record.cell.label) == (wanted, attack):
                here = [one for one in record.readings if (one.name, one.layer) == (name, layer)]
                if here:
                    found[record.cell.seed] = here[0]
        return found

    def values(self, defence: str, attack: str, name: str, layer: str | None = None) -> BySeed:
        """Return the value of a reading for each seed that has it."""
        return {seed: one.value for seed, one in self.readings(defence, attack, name, layer).items()}

    def utility(self, defence: str) -> BySeed:
        """Return the test AUC of the training under a defence for each seed."""
        return self.values(defence, NORM, "auc")

    def loss(self, defence: str) -> BySeed:
        """Return the loss at the end of the training under a defence for each seed."""
        return self.values(defence, NORM, "training_loss")


def differences(one: BySeed, other: BySeed) -> list[float]:
    """Return one less the other for each seed that has both.

    Example:
        >>> differences({0: 0.75, 1: 0.5}, {0: 0.5, 2: 0.5})
        [0.25]
    """
    return [one[seed] - other[seed] for seed in one if seed in other]
