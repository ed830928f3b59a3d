"""Label Leakage and Protection in Two-party Split Learning: the norm of a cut gradient tells the label, and sumKL hides it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from leaktight.papers.paper import Order, Paper, Plans, Records
from leaktight.papers.reproduction import Check, Tables
from leaktight.papers.split_label_leakage.checks import checks_of
from leaktight.papers.split_label_leakage.measured import Measured
from leaktight.papers.split_label_leakage.plans import plans_of
from leaktight.papers.split_label_leakage.published import published
from leaktight.papers.split_label_leakage.settings import left_out, studies
from leaktight.papers.split_label_leakage.tables import tables_of


class SplitLabelLeakage(Paper):
    """Leak AUC over training and test AUC of Wide & Deep under sumKL, isotropic noise and max-norm.

    Every number is the mean over seeds, with the t-interval of it where there are two or more. The number of steps is the one that is best
    without protection on a fifth of the training rows, which were held out for that; the table `steps` shows it. All defences train as long.

    Differs from the paper: It reports the best test AUC over training, which chooses on the test set; here the test AUC at the end. The training
    loss is not shown, nor the two factors of the norm in Fig. 1. Direction, clustering and max-norm are measured too; isotropic noise is
    compared where it leaks as much, not at one ratio. At layers before the cut each step's leak AUC counts as 0.5 + |AUC - 0.5|, for its sign
    there is that of the feature party's own slopes; `chance` is what the 95 % quantile would be if the message told nothing. The optimiser is not named in the paper; Adam with 0.0001 at the
    scale `paper` is from the published code. At the scale `small` the parties hold different columns (label party: counts; feature party:
    categories), and once more all of them, as in the paper; batches are of 1,024, Adam has 0.001. `settings` has the rest.

    References:
        Li et al., "Label Leakage and Protection in Two-party Split Learning", 2021, section 2.2 and Fig. 1, section 4 and Fig. 2.
    """

    name: ClassVar[str] = "split-label-leakage"
    title: ClassVar[str] = "Label Leakage and Protection in Two-party Split Learning (Li et al. 2021)"
    keys: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "moments": ("data_set", "defence", "moment"),
        "distributions": ("data_set", "defence", "moment", "label"),
        "training": ("data_set", "layer", "defence"),
        "attacks": ("data_set", "attack", "defence"),
        "layers": ("data_set", "defence", "layer"),
        "trade_off": ("data_set", "defence"),
        "equal_leak": ("data_set", "attack"),
        "steps": ("data_set", "steps"),
    }

    def plans(self, order: Order) -> Plans:
        """Return the audits of every data set."""
        return {name: plan for study in studies(order) for name, plan in plans_of(study, order.seed).items()}

    def tables(self, order: Order, records: Records) -> Tables:
        """Return the tables, in the order of the paper."""
        return tables_of([Measured.of(study, records) for study in studies(order)])

    def published(self) -> Tables:
        """Return the four leak AUCs of section 2.2, and what the text says about the figures."""
        return published()

    def checks(self, tables: Tables) -> list[Check]:
        """Return what the paper claims, for every data set."""
        return checks_of(tables)

    def cut(self, order: Order) -> str:
        """Return what `steps` cuts."""
        return f"at most {order.steps} steps, one seed, the strongest bound, two ratios, 2,000 training and 1,000 test rows"

    def left_out(self, order: Order) -> list[str]:
        """Return the data sets that the small scale does without."""
        return left_out(order)

    def notes(self, order: Order) -> list[str]:
        """Say where the data are smaller than a batch of the paper."""
        found = []
        for study in studies(order) if order.scale == "paper" and order.steps is None else ():
            rows = len(study.data.load().train)
            if rows < study.batch_size:
                found.append(
                    f"The {study.name} data have {rows:,} training rows, the paper's about 41 million: each batch has all of them, not {study.batch_size:,}."
                )
        return found
