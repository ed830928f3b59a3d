"""Rethinking Privacy Preserving Deep Learning: the secret polarization network, and the protocol that compares mechanisms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from leaktight.papers.paper import Order, Paper, Plans, Records
from leaktight.papers.polarization_network.checks import checks_of
from leaktight.papers.polarization_network.federations import federated_rows
from leaktight.papers.polarization_network.notes import notes_of
from leaktight.papers.polarization_network.plans import plans_of
from leaktight.papers.polarization_network.published import published
from leaktight.papers.polarization_network.settings import left_out, studies
from leaktight.papers.polarization_network.tables import Measured, tables_of
from leaktight.papers.reproduction import Check, Tables


class PolarizationNetwork(Paper):
    """Accuracies of DLNet under four mechanisms, attacks on one gradient of it, and federated training of larger networks.

    Accuracies come from round robin over ten participants; attacks see one gradient of the initial network, as in Algorithm 5.

    Differs from the paper: "DP" is called Gaussian, which it is. Tracing and membership are decided on the reconstructions of
    ten participants. Tracing asks whose the attacked images are, not all that are owned, of which almost none was sent: over those,
    perfect reconstructions and noise differ by less than a hundredth. Measured too are labels read off the public head, and an attacker
    who knows the mechanism and takes the best of all attacks at each strength. The learning rate of Table 3 is 0.01 for both
    networks (it lists 0.01 and 0.001). Numbers of steps follow from a participant's mean share of the data. The scales `smoke` and
    `small` have fewer strengths, victims, iterations and rounds, and a thinner AlexNet; `settings` says which.

    References:
        Fan et al., "Rethinking Privacy Preserving Deep Learning: How to Evaluate and Thwart Privacy Attacks", 2020, section 4,
        appendices C to F.
    """

    name: ClassVar[str] = "polarization-network"
    title: ClassVar[str] = "Rethinking Privacy Preserving Deep Learning (Fan et al. 2020)"
    keys: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "ppc": ("data_set", "mechanism", "strength", "batch_size"),
        "cap": ("data_set", "mechanism", "attack", "batch_size"),
        "accuracy": ("data_set", "mechanism", "strength"),
        "federated": ("data_set", "network", "partition", "clients", "training"),
        "bits": ("data_set", "bits", "strength"),
        "laplace": ("data_set", "noise", "strength"),
    }

    def plans(self, order: Order) -> Plans:
        """Return the audits of every data set."""
        return {name: plan for study in studies(order) for name, plan in plans_of(study, order.seed).items()}

    def tables(self, order: Order, records: Records) -> Tables:
        """Return the six tables, in the order of the paper."""
        found = studies(order)
        tables = tables_of([Measured.of(study, records) for study in found])
        tables["federated"] = [row for study in found for row in federated_rows(study, records)]
        return {name: tables[name] for name in self.keys}

    def published(self) -> Tables:
        """Return Tables 7 to 11, and what the text says about the figures."""
        return published()

    def checks(self, tables: Tables) -> list[Check]:
        """Return what the paper claims."""
        return checks_of(tables)

    def cut(self, order: Order) -> str:
        """Return what `steps` cuts."""
        smaller = ", 1000 training and 50 test images" if order.scale != "smoke" else ""
        return (
            f"at most {order.steps} rounds, local steps and attack iterations, 2 victims, the weakest and the strongest setting, the "
            f"fewest clients, batches of 2 in their training{smaller}"
        )

    def left_out(self, order: Order) -> list[str]:
        """Return the data sets that the full experiment does without."""
        return left_out(order)

    def notes(self, order: Order) -> list[str]:
        """Say where our numbers and the published ones are not of the same thing."""
        return notes_of(studies(order))
