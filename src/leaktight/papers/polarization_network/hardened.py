"""The hardened variant: polarization whose public head is guarded by noise too. A table of our own."""

from __future__ import annotations

from collections.abc import Sequence

from leaktight.core.defence import Defence
from leaktight.papers.check import Check, at_least
from leaktight.papers.comparison import difference
from leaktight.papers.paper import Experiment
from leaktight.papers.polarization_network import audits, ppc
from leaktight.papers.polarization_network.mechanisms import hardened
from leaktight.papers.polarization_network.scales import Study
from leaktight.papers.records import Records
from leaktight.papers.row import Row, columns, reading_of, rows_where

HIDDEN, PRICE = 0.3, -0.05
"""How many labels the variant should hide, and what it may cost in accuracy."""
NOTE = (
    "The hardened variant adds Gaussian noise to the public head's gradient in every local step, at the head noise "
    "shown (0 is SPN as published). A linear first layer would stay as open as before."
)


def rows(studies: Sequence[Study], records: Records) -> list[Row]:
    """Return a row for each scale of the noise and each stage of the attacked network, at batch 1."""
    return [
        _row(study, records, stage, noise)
        for study in studies
        for stage in (audits.INITIAL, audits.TRAINED)
        for noise in (0.0, *study.head_noise)
    ]


def checks(rows: Sequence[Row]) -> list[Check]:
    """Ask what the strongest noise on the head hides, and what it costs."""
    focus = audits.focus_of(rows)
    found = []
    for stage in (audits.INITIAL, audits.TRAINED):
        own = rows_where(rows, data_set=focus, stage=stage)
        least, most = own[0], own[-1]
        where = f"head noise {most['head_noise']}, {stage} network, {focus}"
        found.append(
            at_least(f"Labels hidden from every attack, {where}", reading_of(most, "strongest_membership"), HIDDEN)
        )
    price = difference(reading_of(most, "accuracy"), reading_of(least, "accuracy"))
    return [
        *found,
        at_least(f"Accuracy(head guarded) - Accuracy(SPN), head noise {most['head_noise']}, {focus}", price, PRICE),
    ]


def _row(study: Study, records: Records, stage: str, noise: float) -> Row:
    defence: Defence = hardened(study.hardened_alpha2, noise)
    row: Row = {
        "data_set": study.name,
        "stage": stage,
        "head_noise": noise,
        **columns("accuracy", audits.accuracy(study, records, defence)),
        **columns("ratio", audits.ratio(study, records, defence, 1, stage)),
        **columns(audits.LABELS, audits.distance(study, records, audits.MEMBERSHIP, defence, 1, audits.LABELS, stage)),
        **columns(audits.FEATURES, audits.features(study, records, defence, stage)),
    }
    for aim in audits.DISTANCES:
        row |= columns(f"strongest_{aim}", audits.strongest_distance(study, records, aim, defence, 1, stage))
    return row


EXPERIMENT = Experiment(
    table="hardened",
    keys=("data_set", "stage", "head_noise"),
    plans=ppc.plans,
    rows=rows,
    checks=checks,
    notes=lambda studies: [NOTE],
)
