"""Few entries: what a forest finds in some random entries of each layer, beside all of it (Fig. 6)."""

from __future__ import annotations

from leaktight.papers.layer_leakage import classifiers
from leaktight.papers.layer_leakage.audits import ENTRIES, FOREST, KEYS, leak_columns, places
from leaktight.papers.layer_leakage.scales import Study
from leaktight.papers.paper import Experiment
from leaktight.papers.records import Records
from leaktight.papers.row import Row, claims

PUBLISHED = claims(
    ("With 48 random entries of each layer the pattern is that of complete gradients.", "6.2, Fig. 6"),
    ("Layers around the first fully connected one still have the higher AUC.", "6.2, Fig. 6"),
)


def rows(study: Study, records: Records) -> list[Row]:
    """Return a row for each layer, from few entries and from all."""
    attacks = {f"{study.entries} random": ENTRIES, "pooled, all": FOREST}
    return [
        {**place, "entries": entries, **leak_columns(records, subject, network, layer, attack)}
        for subject in study.subjects
        for network in study.compared
        for entries, attack in attacks.items()
        for place, layer in places(subject, network)
    ]


EXPERIMENT = Experiment(
    table="entries", keys=(*KEYS, "entries"), plans=classifiers.plans, rows=rows, published=PUBLISHED
)
