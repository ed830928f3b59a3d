"""Test AUC beside leakage for every defence (Fig. 2c): the 95 % quantile at the cut, and all messages added up."""

from __future__ import annotations

from collections.abc import Sequence

from leaktight.papers.check import Check, at_most
from leaktight.papers.paper import Experiment
from leaktight.papers.records import Records
from leaktight.papers.row import Row, claims, groups, over_seeds, value_at
from leaktight.papers.split_label_leakage import audits
from leaktight.papers.split_label_leakage.mechanisms import PROTECTED
from leaktight.papers.split_label_leakage.scales import Study

LOST = 0.02
"""How much test AUC may be lost."""
COLUMNS = dict(
    zip(
        (*audits.ATTACKS, audits.STRONGEST),
        ("norm_q95", "direction_q95", "clustering_q95", "posterior_q95", "strongest_q95"),
        strict=True,
    )
)
PUBLISHED = claims(
    ("More noise lowers the leak AUC and may hurt the model.", "3"),
    ("sumKL L=0.4 has a higher best test AUC than isotropic 5, and a smaller training loss.", "4, Fig. 2c"),
)


def rows(studies: Sequence[Study], records: Records) -> list[Row]:
    """Return a row for each defence."""
    return [_row(study, records, name) for study in studies for name in audits.compared_defences(study)]


def checks(rows: Sequence[Row]) -> list[Check]:
    """Ask for the price of the protection."""
    return [
        at_most(
            f"Test AUC(unprotected) - Test AUC({PROTECTED}), {name}", value_at(own, "lost_auc", defence=PROTECTED), LOST
        )
        for (name,), own in groups(rows, "data_set")
    ]


def _row(study: Study, records: Records, name: str) -> Row:
    row: Row = {
        "data_set": study.name,
        "defence": name,
        **over_seeds("test_auc", audits.utility(study, records, name).values()),
        **audits.price(study, records, name),
        **over_seeds("training_loss", audits.utility(study, records, name, "training_loss").values()),
    }
    for attack, column in COLUMNS.items():
        row |= over_seeds(column, audits.leaks(study, records, name, attack).values())
    return row | over_seeds("strongest_run", audits.leaks(study, records, name, audits.STRONGEST, audits.RUN).values())


EXPERIMENT = Experiment(
    table="trade_off",
    keys=("data_set", "defence"),
    plans=audits.plan_leaks,
    rows=rows,
    published=PUBLISHED,
    checks=checks,
)
