"""Cosines of the public and the private gradient, tensor by tensor, over training (Fig. 4)."""

from __future__ import annotations

from collections.abc import Sequence

from leaktight.attacks.label_reading import LabelReading
from leaktight.core.probe import Attempt
from leaktight.metrics.perturbation import is_of_body
from leaktight.metrics.perturbation_cosine import PerturbationCosine
from leaktight.papers.check import Check, above
from leaktight.papers.comparison import mean_of
from leaktight.papers.paper import Experiment, Plans
from leaktight.papers.polarization_network.audits import (
    focus_of,
    make_plan,
    mean_over_seeds,
    seeds_of,
    train_in_turn,
)
from leaktight.papers.polarization_network.mechanisms import spn
from leaktight.papers.polarization_network.scales import PARTICIPANTS, Study
from leaktight.papers.records import Records
from leaktight.papers.row import Row, claims, columns, reading_of, rows_where

ALPHA2 = 0.1
STAGES = ("initial", "early", "end")
COSINE = "perturbation_cosine"
PUBLISHED = claims(
    ("Cosines between the gradients of both losses are -0.0033, 0.1760, 0.0243 and 0.1861.", "Fig. 4"),
    ("The gradients of the polarization loss exhibit strong correlations with those of the cross entropy.", "3.1"),
)
LAYERS = (
    "Fig. 4 names neither the network of its four cosines nor when they were taken. Ours are of every tensor of DLNet "
    f"under SPN {ALPHA2}, on batches of the training run's size, before, early in and after training; the public head "
    "has none, as the private loss does not reach it."
)


def plans(studies: Sequence[Study]) -> Plans:
    """Train DLNet under polarization, and look at gradients at three stages."""
    return {
        _audit(study): make_plan(
            f"{study.name}: cosines",
            {"round robin": train_in_turn(study)},
            [spn(ALPHA2)],
            {"cosines": Attempt(attack=LabelReading(), metrics=(PerturbationCosine(),))},
            seeds_of(study),
            stages=STAGES,
            batch_sizes=(study.batch_size,),
            victims=PARTICIPANTS,
        )
        for study in studies
    }


def rows(studies: Sequence[Study], records: Records) -> list[Row]:
    """Return a row for each stage and tensor of the body."""
    found: list[Row] = []
    for study in studies:
        for stage in STAGES:
            cells = records.where(_audit(study), label="cosines", stage=stage, defence=spn(ALPHA2))
            names = [r.layer or "" for record in cells.done for r in record.readings if r.name == COSINE]
            found += [
                {
                    "data_set": study.name,
                    "stage": stage,
                    "tensor": tensor,
                    **columns("cosine", mean_over_seeds(cells, COSINE, layer=tensor, optional=True)),
                }
                for tensor in dict.fromkeys(names)
                if is_of_body(tensor)
            ]
    return found


def checks(rows: Sequence[Row]) -> list[Check]:
    """Ask whether the secret loss pulls where the public one does, at each stage."""
    if not rows:
        return [above("Cosine of the public and the private gradient", None, 0)]
    own = rows_where(rows, data_set=focus_of(rows))
    name = f"Cosine of the public and the private gradient, mean over tensors, {focus_of(rows)}"
    return [
        above(f"{name}, {stage}", mean_of([reading_of(row, "cosine") for row in rows_where(own, stage=stage)]), 0)
        for stage in STAGES
    ]


def _audit(study: Study) -> str:
    return f"{study.name}-cosines"


EXPERIMENT = Experiment(
    table="cosines",
    keys=("data_set", "stage", "tensor"),
    plans=plans,
    rows=rows,
    published=PUBLISHED,
    checks=checks,
    notes=lambda studies: [LAYERS],
)
