"""Passes: what leaks of each row by all messages about it, as a training run goes through the data again and again."""

from __future__ import annotations

from collections.abc import Sequence

from leaktight.core.defence import Defence, Undefended
from leaktight.core.label_bound import LabelBound
from leaktight.defences.isotropic import IsotropicNoise
from leaktight.defences.sumkl import SumKL
from leaktight.papers.check import Check, at_most
from leaktight.papers.paper import Experiment, Plans
from leaktight.papers.records import Readings, Records
from leaktight.papers.row import Row, claims, groups, number, over_seeds, reading_of, rows_where
from leaktight.papers.split_label_leakage.audits import (
    ATTACKS,
    PASSES,
    audit_name,
    make_scenario,
    price_columns,
    seeds_of,
    strongest,
)
from leaktight.papers.split_label_leakage.mechanisms import (
    BASELINE,
    NONE,
    NORM,
    PROTECTED,
    PUBLISHED_RATIO,
    STRONGEST_BOUND,
    attacks,
    sumkl,
)
from leaktight.papers.split_label_leakage.scales import Study
from leaktight.plans.plan import Grid, Plan

LOOKS = (1, 2, 3, 5, 10, 20, 30)
"""After how many passes the table has a row, as far as the training run goes; and after the last."""
PUBLISHED = claims(("The detection error that is bounded is that of one message.", "3.1, theorem 1"))


def plans(studies: Sequence[Study]) -> Plans:
    """Attack all messages of a training run of so many passes, under bounds for one message and for all."""
    return {_audit(study): _plan(study) for study in studies if study.passes}


def rows(studies: Sequence[Study], records: Records) -> list[Row]:
    """Return what the strongest attack reaches after some passes, and what the stated bound allows by then."""
    return [
        row
        for study in studies
        if study.passes
        for name, defence in compared_defences(study.passes).items()
        for row in _rows(study, records, name, defence)
    ]


def checks(rows: Sequence[Row]) -> list[Check]:
    """Ask whether the bound of one message still bounds all of them, and the bound of all does."""
    verdicts = []
    for (name,), own in groups(rows, "data_set"):
        last = max(int(number(row, "passes") or 0) for row in own)
        ceiling = LabelBound(STRONGEST_BOUND).ceiling()
        for defence in (PROTECTED, sumkl(STRONGEST_BOUND, last)):
            [row] = rows_where(own, defence=defence, passes=last)
            words = f"Leak AUC of the strongest attack, all {last} passes added up, {defence}, {name}"
            verdicts.append(at_most(words, reading_of(row, "leak_auc"), ceiling))
    return verdicts


def compared_defences(passes: int) -> dict[str, Defence]:
    """Return what is compared by name: bounds for one message and for all passes, and the paper's isotropic noise.

    Example:
        >>> list(compared_defences(20))
        ['none', 'sumKL L=0.4', 'sumKL L=0.4 over 20 passes', 'isotropic 5']
    """
    return {
        NONE: Undefended(),
        PROTECTED: SumKL(bound=STRONGEST_BOUND),
        sumkl(STRONGEST_BOUND, passes): SumKL(bound=STRONGEST_BOUND, passes=passes),
        BASELINE: IsotropicNoise(ratio=PUBLISHED_RATIO),
    }


def _audit(study: Study) -> str:
    return audit_name(study, "passes")


def _plan(study: Study) -> Plan:
    scenario = make_scenario(study, study.data, rounds=1, moments=study.moments)
    scenario = scenario.shorten(study.passes * scenario.steps_per_pass())
    return Plan(
        title=f"{study.name}: over passes",
        scenarios={"cut before the head": scenario},
        defences=tuple(defence for name, defence in compared_defences(study.passes).items() if name != NONE),
        probes=dict(attacks()),
        grid=Grid(seeds=seeds_of(study), stages=("training",), batch_sizes=(scenario.batch_size,), victims="all"),
    )


def _rows(study: Study, records: Records, name: str, defence: Defence) -> list[Row]:
    each = [_readings(study, records, defence, attack, PASSES) for attack in ATTACKS]
    plain, under = (_readings(study, records, one, NORM, "auc") for one in (Undefended(), defence))
    bound = defence.label_bound
    prices: Row = {
        **over_seeds("test_auc", (reading.value for reading in under.values())),
        **price_columns(plain, under),
    }
    found: list[Row] = []
    for passes in sorted({*(look for look in LOOKS if look < study.passes), study.passes}):
        reached = strongest([_after(readings, passes) for readings in each])
        found.append(
            {
                "data_set": study.name,
                "defence": name,
                "passes": passes,
                **over_seeds("leak_auc", reached.values()),
                "ceiling": bound.ceiling(passes) if bound else None,
                **prices,
            }
        )
    return found


def _readings(study: Study, records: Records, defence: Defence, attack: str, name: str) -> Readings:
    return records.where(_audit(study), label=attack, defence=defence).done.readings(name, optional=True)


def _after(readings: Readings, passes: int) -> dict[int, float]:
    return {seed: reading.each[passes - 1] for seed, reading in readings.items() if len(reading.each) >= passes}


def notes(studies: Sequence[Study]) -> list[str]:
    """Say how long those training runs are."""
    lengths = [f"{study.name} {study.passes}" for study in studies if study.passes]
    if not lengths:
        return []
    return [
        f"In the table `passes`, which is ours, training runs go through the data so often: {', '.join(lengths)}. "
        "`ceiling` is the largest leak AUC that the stated bound allows after so many passes."
    ]


EXPERIMENT = Experiment(
    table="passes",
    keys=("data_set", "defence", "passes"),
    plans=plans,
    rows=rows,
    published=PUBLISHED,
    checks=checks,
    notes=notes,
)
