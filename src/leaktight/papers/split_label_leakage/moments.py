"""The norm attack at four moments of a training run, cut in the middle (section 2.2)."""

from __future__ import annotations

from collections.abc import Sequence

from leaktight.papers.paper import Experiment
from leaktight.papers.records import Records
from leaktight.papers.row import Row, over_seeds
from leaktight.papers.split_label_leakage.audits import LOOKS, at_look, plan_distributions
from leaktight.papers.split_label_leakage.mechanisms import NONE, NORM, PROTECTED
from leaktight.papers.split_label_leakage.scales import CRITEO_ALL, Study

LEAK_AUC = (0.9832, 0.8862, 0.9098, 0.9229)
"""After 100, 200, 300 and 400 steps, cut in the middle, without protection (section 2.2); both parties hold all
columns."""
PUBLISHED: list[Row] = [
    {"data_set": CRITEO_ALL, "defence": NONE, "moment": look, "leak_auc": value}
    for look, value in enumerate(LEAK_AUC, start=1)
]


def rows(studies: Sequence[Study], records: Records) -> list[Row]:
    """Return the leak AUC at the moments of Fig. 1, without protection and with it."""
    return [
        {
            "data_set": study.name,
            "defence": name,
            "moment": look,
            "step": look * study.pause,
            **over_seeds("leak_auc", at_look(study, records, name, NORM, "leak_auc", look)),
        }
        for study in studies
        for name in (NONE, PROTECTED)
        for look in range(1, LOOKS + 1)
    ]


EXPERIMENT = Experiment(
    table="moments",
    keys=("data_set", "defence", "moment"),
    plans=plan_distributions,
    rows=rows,
    published=PUBLISHED,
)
