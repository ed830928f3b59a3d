"""Layer-wise Characterization of Latent Information Leakage: which layer's gradient tells a property that nobody meant to share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from leaktight.papers.layer_leakage.checks import checks_of
from leaktight.papers.layer_leakage.inversions import inversion_rows
from leaktight.papers.layer_leakage.measured import Measured
from leaktight.papers.layer_leakage.notes import notes_of
from leaktight.papers.layer_leakage.plans import plans_of
from leaktight.papers.layer_leakage.published import published
from leaktight.papers.layer_leakage.settings import left_out, study_of
from leaktight.papers.layer_leakage.tables import tables_of
from leaktight.papers.paper import Order, Paper, Plans, Records
from leaktight.papers.reproduction import Check, Tables

_PLACE = ("data_set", "task", "property", "network", "layer")


class LayerLeakage(Paper):
    """Property inference on single layers of three networks, beside V-information and sensitivity, which are to tell of it.

    Two participants train by federated SGD; every second batch of each has the property. What leaks is measured on gradients that are sent
    throughout the training, sensitivity and mutual information on the model at its end.

    Differs from the paper: Half of the messages have the property, where in the code that it builds on a fifth has. A run that is looked at
    goes on from moments that are spread evenly over the training, from its first round on, where the paper starts after some hundred.
    V-information is measured on the messages that are attacked, by forests that answer by votes. Its correlation with another property's
    attack, which Fig. 7 asks about, is that of the first other subject. Networks that the paper does not fully describe are
    completed as `FaceAlexNet`, `VGG11Net`, `FCNet` and `DeepDLNet` say. The scales `smoke` and `small` have shorter trainings, fewer messages,
    smaller images and an attacker at the server. The table `mixed` is ours: batches of which only a part has the property. `settings` has the rest.

    References:
        Mo et al., "Layer-wise Characterization of Latent Information Leakage in Federated Learning", 2021, sections 5, 6, 9.1 and 9.2.
    """

    name: ClassVar[str] = "layer-leakage"
    title: ClassVar[str] = "Layer-wise Characterization of Latent Information Leakage in Federated Learning (Mo et al. 2021)"
    keys: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "layers": _PLACE,
        "correlation": ("network", "measure"),
        "mixed": _PLACE,
        "norms": (*_PLACE, "norm"),
        "classifiers": (*_PLACE, "classifier"),
        "entries": (*_PLACE, "entries"),
        "properties": _PLACE,
        "tasks": _PLACE,
        "mutual_information": _PLACE,
        "inversion": ("data_set", "layers"),
    }

    def plans(self, order: Order) -> Plans:
        """Return the audits of every subject, and the inversion."""
        return plans_of(study_of(order), order.seed)

    def tables(self, order: Order, records: Records) -> Tables:
        """Return the tables, in the order of the paper."""
        study = study_of(order)
        found = tables_of(Measured(study, records))
        found["inversion"] = inversion_rows(study, records)
        return {name: found[name] for name in self.keys}

    def published(self) -> Tables:
        """Return Table 1, and what the text says about the figures."""
        return published()

    def checks(self, tables: Tables) -> list[Check]:
        """Return what the paper claims."""
        return checks_of(tables)

    def cut(self, order: Order) -> str:
        """Return what `steps` cuts."""
        study = study_of(order)
        smaller = ", 300 training and 150 test images" if order.scale != "smoke" else ""
        return (
            f"{study.rounds} rounds, {study.messages} messages, {study.gradients} gradients of the attacker's own, one seed, one repeat, "
            f"{study.samples} examples for sensitivity, inversion of 2 images by at most {order.steps} of its iterations{smaller}"
        )

    def left_out(self, order: Order) -> list[str]:
        """Return the data sets that an order does without."""
        return left_out(order)

    def notes(self, order: Order) -> list[str]:
        """Say where our numbers and the published ones are not of the same thing."""
        return notes_of(study_of(order))
