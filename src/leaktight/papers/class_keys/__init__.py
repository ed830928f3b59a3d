"""Key Protected Classification for Collaborative Learning: who has no key of a class cannot learn to picture it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from leaktight.papers.class_keys.checks import checks_of
from leaktight.papers.class_keys.notes import notes_of
from leaktight.papers.class_keys.plans import plans_of
from leaktight.papers.class_keys.published import published
from leaktight.papers.class_keys.settings import left_out, scope_of
from leaktight.papers.class_keys.tables import tables_of
from leaktight.papers.paper import Order, Paper, Plans, Records
from leaktight.papers.reproduction import Check, Tables


class KeyProtectedClassification(Paper):
    """The GAN attack on the plain collaborative framework and on class keys, with what the attacker knows of a key, and what keys cost.

    Every number is the mean over seeds, with the t-interval of it where there are two or more; each seed attacks another class, but
    several attackers at once are always after the first.

    Differs from the paper: It shows pictures; here samples are scored (`metrics.generated`). Participants take two steps in a turn at the scales
    `smoke` and `small`, on part of MNIST, and the generator is small and trained by Adam. Accuracy over training is that of the joint model
    after a reveal at that moment. Other defences beside keys are ours, and so is the attacker who estimates keys. The attackers of Fig. 6 are all participants but one, who
    is attacked. Fig. 8 takes the limit of gradient descent, the normalised sum of both keys. Table 1 has our networks, and keys
    on a fixed layer. `settings` and the notes have the rest.

    References:
        Sariyildiz, Cinbis and Ayday, "Key Protected Classification for Collaborative Learning", Pattern Recognition 2020, sections 4.3 and 5.
    """

    name: ClassVar[str] = "class-keys"
    title: ClassVar[str] = "Key Protected Classification for Collaborative Learning (Sariyildiz et al. 2020)"
    keys: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "key_overlap": ("distribution", "dimensions"),
        "learning": ("data_set", "participants", "framework", "rounds"),
        "experiments": ("data_set", "experiment", "dimensions"),
        "distances": ("data_set", "dimensions", "distance"),
        "several_attackers": ("data_set", "attackers", "framework"),
        "other_defences": ("data_set", "defence"),
        "shared_keys": ("dimensions",),
        "shared_classes": ("data_set", "framework"),
        "regression": ("data_set", "objective"),
    }

    def plans(self, order: Order) -> Plans:
        """Return the audits of every data set."""
        return plans_of(scope_of(order), order.seed)

    def tables(self, order: Order, records: Records) -> Tables:
        """Return the tables, in the order of the paper."""
        return tables_of(scope_of(order), records, order.seed)

    def published(self) -> Tables:
        """Return Table 1, and what the text says about the figures."""
        return published()

    def checks(self, tables: Tables) -> list[Check]:
        """Return what the paper claims."""
        return checks_of(tables)

    def cut(self, order: Order) -> str:
        """Return what `steps` cuts."""
        smaller = ", 400 training and 200 test images" if order.scale != "smoke" else ""
        return f"at most {order.steps} rounds, local steps and generator steps, one seed, the least of what is swept, 20 samples{smaller}"

    def left_out(self, order: Order) -> list[str]:
        """Return the data sets that an order does without."""
        return left_out(order)

    def notes(self, order: Order) -> list[str]:
        """Say where our numbers and the published ones are not of the same thing."""
        return notes_of(scope_of(order), order)
