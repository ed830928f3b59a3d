"""Plans: the audits that a study takes."""

from __future__ import annotations

from leaktight.core.scenario import Scenario
from leaktight.data.held_out import HeldOut
from leaktight.data.source import Source
from leaktight.learning.optimiser import Adam
from leaktight.learning.split import Split
from leaktight.papers.paper import Plans
from leaktight.papers.split_label_leakage.mechanisms import NONE, NORM, PROTECTED, attacks, defences
from leaktight.papers.split_label_leakage.settings import Study
from leaktight.plans.plan import Grid, Plan
from leaktight.probes import ClassGradients, Utility

DISTRIBUTIONS, LEAK, STEPS = "distributions", "leak", "steps"
CLASSES, UTILITY = "class gradients", "utility"
LOOKS = 4
"""After how many pauses Fig. 1 looks at the training."""


def plans_of(study: Study, seed: int) -> Plans:
    """Return the audits of a study by name: distributions, leakage and utility, and the choice of the number of steps."""
    found = {folder(study, DISTRIBUTIONS): _distributions(study, seed), folder(study, LEAK): _leak(study, seed)}
    if study.candidates:
        found[folder(study, STEPS)] = _steps(study, seed)
    return found


def folder(study: Study, part: str) -> str:
    """Return the name of one of its audits, which also names a folder.

    Example:
        >>> from leaktight.data import RareDigit
        >>> folder(Study(name="Rare digit, all", data=RareDigit(), label_party=("r0*",)), LEAK)
        'rare-digit-all-leak'
    """
    return f"{study.name.lower().replace(',', '').replace(' ', '-')}-{part}"


def _distributions(study: Study, seed: int) -> Plan:
    """Look at the gradients of the middle layer at some moments of one training (Fig. 1)."""
    looks = LOOKS + 1  # the first is before the first step
    scenario = split(study, study.data, rounds=looks * study.pause, moments=looks, cut="relu2")
    shown = defences(study.bounds, ())
    return Plan(
        title=f"{study.name}: distributions",
        scenarios={"cut in the middle": scenario},
        defences=(shown[PROTECTED],),
        probes={NORM: attacks()[NORM], CLASSES: ClassGradients()},
        grid=Grid(seeds=(seed,), stages=("training",), batch_sizes=(scenario.batch_size,), victims=looks),
    )


def _leak(study: Study, seed: int) -> Plan:
    """Attack every training at the cut before the head, and at the layers before it (Fig. 2)."""
    scenario = split(study, study.data, rounds=study.rounds, moments=study.moments)
    moments = len(scenario.spread())
    most = moments * (scenario.rounds // moments)
    compared = defences(study.bounds, study.ratios)
    return Plan(
        title=f"{study.name}: leakage and utility",
        scenarios={"cut before the head": scenario},
        defences=tuple(defence for name, defence in compared.items() if name != NONE),
        probes=dict(attacks()),
        grid=Grid(
            seeds=_seeds(study, seed),
            stages=("training",),
            batch_sizes=(scenario.batch_size,),
            victims=min(study.victims, most),
        ),
    )


def _steps(study: Study, seed: int) -> Plan:
    """Train without protection on part of the training rows, and measure on the others."""
    held = HeldOut(data=study.data)
    scenarios: dict[str, Scenario] = {
        f"{count} steps": split(study, held, rounds=count, moments=1) for count in study.candidates
    }
    sizes = {scenario.batch_size for scenario in scenarios.values() if isinstance(scenario, Split)}
    return Plan(
        title=f"{study.name}: number of steps",
        scenarios=scenarios,
        probes={UTILITY: Utility()},
        grid=Grid(seeds=_seeds(study, seed), batch_sizes=tuple(sizes), victims=1),
    )


def split(study: Study, data: Source, rounds: int, moments: int, cut: str = "") -> Split:
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


def _seeds(study: Study, seed: int) -> tuple[int, ...]:
    return tuple(range(seed, seed + study.seeds))
