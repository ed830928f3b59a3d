"""Flags: reasons to doubt the audit itself, each with what to do about it.

A flag is not a finding about a defence. It says that a number of this audit may mislead. A report without flags has
passed every check here, no more. A new check is a function from records to flags, added to `CHECKS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from leaktight.core.record import Record
from leaktight.findings.flag import Flag
from leaktight.findings.flags_attacks import attack_at_chance, leakage_grows, only_non_adaptive
from leaktight.findings.flags_captures import (
    batch_norm_in_training,
    blank_chance,
    captured_not_broken,
    diverged,
    dropout_in_training,
    label_counts_unknown,
    local_steps_unknown,
    not_graded,
    optimiser_not_replayed,
    settings_assumed,
    vanishing_gradients,
    without_truth,
)
from leaktight.findings.flags_contests import adaptive_below_plain, cheap_beats_expensive, more_budget_hurts
from leaktight.findings.flags_coverage import one_message_at_a_time, one_stage_attacked
from leaktight.findings.flags_soundness import (
    control_not_exact,
    incomplete,
    keys_beyond_features,
    noise_is_not_privacy,
    null_above_chance,
    prices_not_paired,
    privacy_without_epsilon,
    utility_at_majority,
)

__all__ = ["CHECKS", "Flag", "raise_flags"]

Check = Callable[[Sequence[Record]], list[Flag]]

CHECKS: tuple[Check, ...] = (
    control_not_exact,
    null_above_chance,
    attack_at_chance,
    cheap_beats_expensive,
    adaptive_below_plain,
    more_budget_hurts,
    only_non_adaptive,
    one_message_at_a_time,
    one_stage_attacked,
    leakage_grows,
    utility_at_majority,
    prices_not_paired,
    privacy_without_epsilon,
    noise_is_not_privacy,
    keys_beyond_features,
    incomplete,
    not_graded,
    without_truth,
    blank_chance,
    vanishing_gradients,
    batch_norm_in_training,
    dropout_in_training,
    label_counts_unknown,
    local_steps_unknown,
    settings_assumed,
    optimiser_not_replayed,
    diverged,
    captured_not_broken,
)
"""Every check, in the order in which its flags are shown."""


def raise_flags(records: Iterable[Record], caveats: Sequence[str] = ()) -> tuple[Flag, ...]:
    """Return every flag that the records of an audit raise, doubts first.

    Args:
        records: what was measured.
        caveats: those of the plan.

    Example:
        >>> [flag.name for flag in raise_flags([])]
        ['control_missing']
    """
    records = list(records)
    found = [flag for check in CHECKS for flag in check(records)]
    found += [Flag("shortened", sentence) for sentence in caveats]
    return tuple(sorted(found, key=lambda flag: flag.severity))
