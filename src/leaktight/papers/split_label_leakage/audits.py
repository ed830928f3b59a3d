"""Audits that several tables share: the training runs of Fig. 1 and of Fig. 2; and what they measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from leaktight.core.metric import Reading
from leaktight.data.source import Source
from leaktight.findings.utility import price_of
from leaktight.learning.optimiser import Adam
from leaktight.learning.split import Split
from leaktight.papers.paper import Plans
from leaktight.papers.records import Readings, Records
from leaktight.papers.row import Row, columns, over_seeds
from leaktight.papers.split_label_leakage.mechanisms import (
    CLUSTERING,
    DIRECTION,
    NONE,
    NORM,
    POSTERIOR,
    PROTECTED,
    attacks,
    defences,
)
from leaktight.papers.split_label_leakage.scales import Study
from leaktight.plans.plan import Grid, Plan
from leaktight.probes import ClassGradients

CLASSES = "class gradients"
LOOKS = 4
"""After how many pauses Fig. 1 looks at the training."""
ATTACKS = (NORM, DIRECTION, CLUSTERING, POSTERIOR)
STRONGEST = "strongest of these"
TAIL, PASSES = "leak_auc_q95", "leak_auc_passes"
ONE, RUN = "one message", "whole run"
MEASURES = {RUN: PASSES, ONE: TAIL}
"""What leaks at the cut: by the scores of each row added up over all messages, and in the worst messages alone."""
BySeed = Mapping[int, float]


def plan_distributions(studies: Sequence[Study]) -> Plans:
    """Look at the gradients of the middle layer at some moments of a training run (Fig. 1)."""
    return {audit_name(study, "distributions"): _distributions(study) for study in studies}


def plan_leaks(studies: Sequence[Study]) -> Plans:
    """Attack every training run at the cut before the head, and at the layers before it (Fig. 2)."""
    return {audit_name(study, "leak"): _leak(study) for study in studies}


def audit_name(study: Study, part: str) -> str:
    """Return the name of one of its audits, which also names a folder.

    Example:
        >>> from leaktight.data import RareDigit
        >>> audit_name(Study(name="Rare digit, all", data=RareDigit(), label_party=("r0*",)), "leak")
        'rare-digit-all-leak'
    """
    return f"{study.name.lower().replace(',', '').replace(' ', '-')}-{part}"


def compared_defences(study: Study) -> list[str]:
    """Return the names of everything that Fig. 2 compares, the unprotected training run first."""
    return list(defences(study.bounds, study.ratios))


def at_look(study: Study, records: Records, defence: str, probe: str, name: str, look: int) -> list[float]:
    """Return a reading's values at a look of Fig. 1, one for each seed that had both classes at all looks."""
    shown = defences(study.bounds, ())[defence]
    cells = records.where(audit_name(study, "distributions"), label=probe, defence=shown)
    readings = cells.done.readings(name, optional=True).values()
    return [reading.each[look] for reading in readings if len(reading.each) == LOOKS + 1]


def leak_readings(
    study: Study, records: Records, defence: str, attack: str, name: str, layer: str | None = None
) -> Readings:
    """Return a reading of an attack of Fig. 2 for each seed that was done; None stands for the cut layer."""
    return _runs(study, records, defence, attack).readings(name, layer=layer, optional=name == PASSES)


def leak_values(
    study: Study, records: Records, defence: str, attack: str, name: str, layer: str | None = None
) -> BySeed:
    """Return the values of such a reading."""
    return {seed: one.value for seed, one in leak_readings(study, records, defence, attack, name, layer).items()}


def chance(study: Study, records: Records, defence: str, attack: str, layer: str | None = None) -> float | None:
    """Return what the 95 % quantile would be for scores that know nothing of the message."""
    readings = leak_readings(study, records, defence, attack, TAIL, layer).values()
    levels = [reading.chance for reading in readings if reading.chance is not None]
    return fmean(levels) if levels else None


def leaks(study: Study, records: Records, defence: str, attack: str, measure: str = ONE) -> BySeed:
    """Return what leaks at the cut by one of `MEASURES` for each seed; of the strongest attack, the largest."""
    if attack != STRONGEST:
        return leak_values(study, records, defence, attack, MEASURES[measure])
    return strongest([leak_values(study, records, defence, name, MEASURES[measure]) for name in ATTACKS])


def strongest(each: Sequence[BySeed]) -> BySeed:
    """Return the largest number for each seed that all have.

    Example:
        >>> strongest([{0: 0.5, 1: 0.75}, {0: 0.625}])
        {0: 0.625}
    """
    return {seed: max(values[seed] for values in each) for seed in each[0] if all(seed in values for values in each)}


def is_whole(study: Study) -> bool:
    """Return whether every message is attacked, and every row comes again: only then scores of a run are added up."""
    if study.victims != "all":
        return False
    scenario = make_scenario(study, study.data, rounds=study.rounds, moments=1)
    return scenario.rounds >= 2 * scenario.steps_per_pass()


def utility(study: Study, records: Records, defence: str, name: str = "auc") -> BySeed:
    """Return the test AUC, or the loss, at the end of the training run for each seed; one that diverged has none."""
    return {seed: reading.value for seed, reading in _utilities(study, records, defence, name).items()}


def price_columns(plain: Readings, under: Readings) -> Row:
    """Return how much test AUC is lost, run by run, as columns.

    The interval rests on the same test rows and on the seeds, where it is known which rows were ranked how; else on the
    seeds alone.

    Args:
        plain: the test AUC of each seed without protection.
        under: that under a defence.
    """
    trainings: list[tuple[Reading, Reading]] = [(plain[seed], under[seed]) for seed in plain if seed in under]
    price = price_of(trainings) if trainings else None
    if price is not None and price.paired:
        return columns("lost_auc", price)
    return over_seeds("lost_auc", (one.value - other.value for one, other in trainings))


def price(study: Study, records: Records, defence: str) -> Row:
    """Return how much test AUC a defence of Fig. 2 costs, as columns."""
    return price_columns(*(_utilities(study, records, name, "auc") for name in (NONE, defence)))


def _utilities(study: Study, records: Records, defence: str, name: str) -> Readings:
    return _runs(study, records, defence, NORM).readings(name, optional=True)


def differences(one: BySeed, other: BySeed) -> list[float]:
    """Return one less the other for each seed that has both.

    Example:
        >>> differences({0: 0.75, 1: 0.5}, {0: 0.5, 2: 0.5})
        [0.25]
    """
    return [one[seed] - other[seed] for seed in one if seed in other]


def make_scenario(study: Study, data: Source, rounds: int, moments: int, cut: str = "") -> Split:
    """Return the scenario of a study; a batch is never larger than the data, and epochs become steps."""
    rows = len(data.load().train)
    batch = min(study.batch_size, rows)
    return Split(
        data=data,
        model=study.network,
        cut=cut,
        label_party=study.label_party,
        feature_party=study.feature_party,
        optimiser=Adam(learning_rate=study.learning_rate),
        rounds=rounds or study.epochs * (rows // batch),
        batch_size=batch,
        moments=moments,
        device=study.device,
    )


def seeds_of(study: Study) -> tuple[int, ...]:
    """Return the seeds of everything that is repeated."""
    return tuple(range(study.seed, study.seed + study.seeds))


def _runs(study: Study, records: Records, defence: str, attack: str) -> Records:
    compared = defences(study.bounds, study.ratios)
    return records.where(audit_name(study, "leak"), label=attack, defence=compared[defence]).done


def _distributions(study: Study) -> Plan:
    looks = LOOKS + 1  # the first is before the first step
    scenario = make_scenario(study, study.data, rounds=looks * study.pause, moments=looks, cut="relu2")
    return Plan(
        title=f"{study.name}: distributions",
        scenarios={"cut in the middle": scenario},
        defences=(defences(study.bounds, ())[PROTECTED],),
        probes={NORM: attacks()[NORM], CLASSES: ClassGradients()},
        grid=Grid(seeds=seeds_of(study), stages=("training",), batch_sizes=(scenario.batch_size,), victims=looks),
    )


def _leak(study: Study) -> Plan:
    scenario = make_scenario(study, study.data, rounds=study.rounds, moments=study.moments)
    moments = len(scenario.spread())
    most = moments * (scenario.rounds // moments)
    compared = defences(study.bounds, study.ratios)
    return Plan(
        title=f"{study.name}: leakage and utility",
        scenarios={"cut before the head": scenario},
        defences=tuple(defence for name, defence in compared.items() if name != NONE),
        probes=dict(attacks()),
        grid=Grid(
            seeds=seeds_of(study),
            stages=("training",),
            batch_sizes=(scenario.batch_size,),
            victims="all" if study.victims == "all" else min(study.victims, most),
        ),
    )
