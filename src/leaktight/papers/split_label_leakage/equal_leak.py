"""Equal leakage: what isotropic noise costs where it leaks as much as something else."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from itertools import pairwise

from leaktight.papers.reproduction import Row, over_seeds
from leaktight.papers.split_label_leakage.measured import BySeed, Measured, differences
from leaktight.papers.split_label_leakage.mechanisms import (
    CLUSTERING,
    DIRECTION,
    NONE,
    NORM,
    PROTECTED,
    isotropic,
)

ATTACKS = (NORM, DIRECTION, CLUSTERING)
STRONGEST = "strongest of these"
TAIL = "leak_auc_q95"


@dataclasses.dataclass(frozen=True)
class Setting:
    """One setting of the noise: its ratio, what leaks under it, and the test AUC."""

    ratio: float
    leak: float
    utility: float


def at_equal_leak(settings: Sequence[Setting], leak: float) -> Setting:
    """Return the least noise that leaks no more than this, between settings by straight lines.

    Leakage need not fall evenly with the ratio near chance; the first setting that gets there counts, which is the one that costs least.
    If none does, the one that leaks least stands for it: then the comparison favours the noise.

    Args:
        settings: by growing ratio; the first is without noise.
        leak: the leakage of what is compared.

    Example:
        >>> curve = [Setting(0, 1.0, 0.75), Setting(5, 0.75, 0.5), Setting(10, 0.5, 0.25)]
        >>> at_equal_leak(curve, 0.625)
        Setting(ratio=7.5, leak=0.625, utility=0.375)
        >>> at_equal_leak(curve, 0.25).ratio
        10
    """
    if settings[0].leak <= leak:
        return settings[0]
    for before, after in pairwise(settings):
        if after.leak <= leak:
            part = (before.leak - leak) / (before.leak - after.leak)
            return Setting(
                before.ratio + part * (after.ratio - before.ratio),
                leak,
                before.utility + part * (after.utility - before.utility),
            )
    return min(settings, key=lambda one: one.leak)


def equal_leak_rows(measured: Measured) -> list[Row]:
    """Return sumKL beside isotropic noise that leaks as much, for each attack (Fig. 2c).

    The paper compares by the norm. The strongest of three attacks is ours, added after a first look at results: below a linear head all
    clean gradients lie on one line and isotropic noise lies mostly across it, so that an attack which finds the line (clustering) may
    see what the norm no longer shows.
    """
    return [_row(measured, attack) for attack in (*ATTACKS, STRONGEST)]


def leaks(measured: Measured, defence: str, attack: str) -> BySeed:
    """Return the 95 % quantile of the leak AUC at the cut for each seed; of the strongest attack, the largest."""
    if attack != STRONGEST:
        return measured.values(defence, attack, TAIL)
    each = [measured.values(defence, one, TAIL) for one in ATTACKS]
    return {seed: max(one[seed] for one in each) for seed in each[0] if all(seed in one for one in each)}


def _row(measured: Measured, attack: str) -> Row:
    protected, utility = leaks(measured, PROTECTED, attack), measured.utility(PROTECTED)
    beside: dict[int, Setting] = {}
    for seed, leak in protected.items():
        curve = _curve(measured, attack, seed)
        if curve:
            beside[seed] = at_equal_leak(curve, leak)
    other: Mapping[int, float] = {seed: one.utility for seed, one in beside.items()}
    return {
        "data_set": measured.study.name,
        "attack": attack,
        **over_seeds("leak_auc_q95", protected.values()),
        **over_seeds("sumkl_test_auc", utility.values()),
        **over_seeds("isotropic_ratio", (one.ratio for one in beside.values())),
        **over_seeds("isotropic_test_auc", other.values()),
        **over_seeds("gain", differences(utility, other)),
    }


def _curve(measured: Measured, attack: str, seed: int) -> list[Setting]:
    """Return the settings of one seed by growing ratio; nothing if one of them is missing, for the curve would be another."""
    names = {0.0: NONE, **{ratio: isotropic(ratio) for ratio in sorted(measured.study.ratios)}}
    found = []
    for ratio, name in names.items():
        leak, utility = leaks(measured, name, attack).get(seed), measured.utility(name).get(seed)
        if leak is None or utility is None:
            return []
        found.append(Setting(ratio, leak, utility))
    return found
