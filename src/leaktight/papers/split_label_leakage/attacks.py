"""Four attacks at the cut: what each makes of each defence; the paper has one of them."""

from __future__ import annotations

from collections.abc import Sequence

from leaktight.papers.paper import Experiment
from leaktight.papers.records import Records
from leaktight.papers.row import Row, claims, over_seeds
from leaktight.papers.split_label_leakage import audits
from leaktight.papers.split_label_leakage.scales import Study

PUBLISHED = claims(("The protection is against a general class of methods, of which the norm is one.", "3.1"))


def rows(studies: Sequence[Study], records: Records) -> list[Row]:
    """Return a row for each attack and defence."""
    return [
        {
            "data_set": study.name,
            "attack": attack,
            "defence": name,
            **over_seeds("leak_auc", audits.leak_values(study, records, name, attack, "leak_auc").values()),
            **over_seeds("leak_auc_q95", audits.leak_values(study, records, name, attack, audits.TAIL).values()),
            "chance": audits.chance(study, records, name, attack),
            **over_seeds("leak_auc_run", audits.leaks(study, records, name, attack, audits.RUN).values()),
        }
        for study in studies
        for attack in audits.ATTACKS
        for name in audits.compared_defences(study)
    ]


EXPERIMENT = Experiment(
    table="attacks", keys=("data_set", "attack", "defence"), plans=audits.plan_leaks, rows=rows, published=PUBLISHED
)
