"""The norm attack at the output of every deep layer, under sumKL and its baselines (Fig. 2c)."""

from __future__ import annotations

from collections.abc import Sequence

from leaktight.papers.paper import Experiment
from leaktight.papers.records import Records
from leaktight.papers.row import Row, claims, over_seeds
from leaktight.papers.split_label_leakage.audits import TAIL, chance, leak_values, plan_leaks
from leaktight.papers.split_label_leakage.mechanisms import BASELINE, MAX_NORM, NONE, NORM, PROTECTED
from leaktight.papers.split_label_leakage.scales import Study

PUBLISHED = claims(
    (
        "Leak AUC of sumKL L=0.4 is about the same as that of isotropic 5, if not better, at each deep layer.",
        "4, Fig. 2c",
    )
)


def rows(studies: Sequence[Study], records: Records) -> list[Row]:
    """Return a row for each defence and layer, from the inputs to the cut."""
    return [
        {
            "data_set": study.name,
            "defence": name,
            "layer": number,
            **over_seeds("leak_auc", leak_values(study, records, name, NORM, "leak_auc", layer).values()),
            **over_seeds("leak_auc_q95", leak_values(study, records, name, NORM, TAIL, layer).values()),
            "chance": chance(study, records, name, NORM, layer),
        }
        for study in studies
        for name in (NONE, PROTECTED, BASELINE, MAX_NORM)
        for number, layer in _layers(study).items()
    ]


def _layers(study: Study) -> dict[int, str | None]:
    """Return the deep layers by number, as our readings name them; None is the cut."""
    depth = len(getattr(study.network, "hidden", ()))
    return {number: f"relu{number}" if number < depth else None for number in range(1, depth + 1)}


EXPERIMENT = Experiment(
    table="layers", keys=("data_set", "defence", "layer"), plans=plan_leaks, rows=rows, published=PUBLISHED
)
