"""Flags about the audit as a whole: its controls, its gaps, and what its words may promise."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from leaktight.core.budget import budgets_of
from leaktight.core.defence import Defence, links
from leaktight.core.display import capital, join_words
from leaktight.core.metric import Reading
from leaktight.core.probe import Attempt
from leaktight.core.record import Record, Status
from leaktight.findings.display import family_of, label_of, name_of, setting_of, title_of
from leaktight.findings.flag import Flag, Severity
from leaktight.findings.kind import leak_kinds
from leaktight.findings.rows import UNTRAINED, Row, rows_of
from leaktight.findings.utility import no_better, utility_name
from leaktight.statistics.outcomes import MOST_ROWS
from leaktight.statistics.pooling import high, low

_DIMENSIONS, _EFFECTIVE = "class_keys.dimensions", "class_keys.effective_length"


def control_not_exact(records: Sequence[Record]) -> list[Flag]:
    """The control cell's answer is known; if it is not found, the instruments are broken and no other number counts."""
    controls = [record for record in records if record.cell.purpose == "control"]
    if not controls:
        return [
            Flag(
                "control_missing",
                "This audit has no control cell, so nothing shows that its instruments work. "
                "Run it with control cells.",
            )
        ]
    wrong = [record for record in controls if not is_exact(record)]
    if not wrong:
        return []
    return [
        Flag(
            "control_not_exact",
            f"{len(wrong)} of {len(controls)} control cells did not recover the known answer. Trust no other number "
            "before that is explained: look at their readings below.",
            tuple(record.cell.key for record in wrong),
        )
    ]


def is_exact(record: Record) -> bool:
    """Return whether a control cell found the known answer, for each of its examples."""
    answers = [exact for kind in leak_kinds() if (exact := kind.is_exact(record)) is not None]
    return record.status is Status.DONE and bool(answers) and all(answers)


def null_above_chance(records: Sequence[Record]) -> list[Flag]:
    """A null cell holds only noise: an attack that finds something has seen the truth, or the chance level is wrong.

    A measurement without an attack may look at public examples alone, and finds in them what it finds.
    """
    return [
        Flag(
            "null_above_chance",
            f"The attack {label_of(record.cell)} does better than chance in {join_words(names)} on messages that hold "
            "only noise. Either it sees something it should not, or the chance level is wrong; do not trust its other "
            "numbers.",
            (record.cell.key,),
        )
        for record in records
        if record.cell.purpose == "null"
        and isinstance(record.cell.probe, Attempt)
        and (names := list(dict.fromkeys(title_of(r.name) for r in record.readings if far_from_chance(r))))
    ]


def far_from_chance(reading: Reading) -> bool:
    """Return whether a reading on noise lies on the leaking side of chance by more than twice its interval.

    Where the chance level is exact, as that of an AUC is, one null cell in forty lies beyond its interval by luck
    alone, and an audit has many.

    Example:
        >>> lucky = Reading(name="leak_auc", value=0.55, low=0.51, high=0.58, chance=0.5, leaks="high")
        >>> lucky.beats_chance(), far_from_chance(lucky)
        (True, False)
    """
    if reading.chance is None or not reading.beats_chance():
        return False
    half = reading.value - low(reading) if reading.leaks == "high" else high(reading) - reading.value
    return abs(reading.value - reading.chance) > 2 * half


def utility_at_majority(records: Sequence[Record]) -> list[Flag]:
    """A model that has learned nothing is private and useless; a defence must not be praised for it."""
    rows = [row for row in rows_of(records) if row.useless or row.unpriced == UNTRAINED]
    return [
        _at_majority([row for row in rows if row.scenario == number])
        for number in sorted({row.scenario for row in rows})
    ]


def _at_majority(rows: Sequence[Row]) -> Flag:
    cells = tuple(dict.fromkeys(key for row in rows for key in row.cells))
    where = f"In scenario {rows[0].scenario}: " if rows[0].among > 1 else ""
    utility, why = rows[0].utility, rows[0].unpriced
    if why:
        said = (
            f"{capital(why)}, so no price in {utility_name(utility)} can be read off. Train longer before comparing "
            "defences."
        )
    else:
        names = join_words(list(dict.fromkeys(name_of(row.defence) for row in rows)))
        said = (
            f"With {names} the model {no_better(*(row.utility for row in rows))}; what keeps it private may be that it "
            "learned nothing. Weaken the defence, or train longer."
        )
    return Flag("utility_at_majority", f"{where}{said}", cells, "info" if why == UNTRAINED else "doubt")


def prices_not_paired(records: Sequence[Record]) -> list[Flag]:
    """A price whose test rows were not kept has the interval of two independent samples.

    That interval is too wide, so a real price may not show.
    """
    rows = [
        row for row in rows_of(records) if row.loss is not None and not row.loss.paired and row.loss.low is not None
    ]
    if not rows:
        return []
    names = join_words(list(dict.fromkeys(family_of(row.defence) for row in rows)))
    said = (
        f"What became of each test row was not kept for {names}, so the intervals of its price are those of "
        "independent samples, as a rule too wide. Measure again with a scenario that keeps it, and with at most "
        f"{MOST_ROWS} test rows."
    )
    return [Flag("prices_not_paired", said, tuple(dict.fromkeys(key for row in rows for key in row.cells)), "info")]


def privacy_without_epsilon(records: Sequence[Record]) -> list[Flag]:
    """A promise of differential privacy needs a finite epsilon, in a chain one for each kind of link that promises it.

    A defence notes an infinite one where it clips and adds no noise.
    """
    bare = []
    for record in _measurements(records):
        budgets = budgets_of(record.notes)
        promising = {link.kind for link in links(record.cell.defence) if link.promise == "dp"}
        counted = {budget.defence for budget in budgets}
        if len(counted) < len(promising) or not all(math.isfinite(budget.epsilon) for budget in budgets):
            bare.append(record)
    if not bare:
        return []
    names = join_words(list(dict.fromkeys(name_of(record.cell.defence) for record in bare)))
    said = (
        f"{names} has no finite epsilon in its records, so nothing shows that it gives differential privacy. Add "
        "noise, or let it note what it spends."
    )
    return [Flag("privacy_without_epsilon", said, tuple(record.cell.key for record in bare))]


def noise_is_not_privacy(records: Sequence[Record]) -> list[Flag]:
    """Noise without an epsilon is not differential privacy, whatever it hides."""
    noisy = [record for record in _measurements(records) if _only_adds_noise(record.cell.defence)]
    if not noisy:
        return []
    bounded = [one for record in noisy for one in links(record.cell.defence) if one.label_bound is not None]
    said = (
        f"The noise of {_families(record.cell.defence for record in noisy)} has no epsilon: it may hinder attacks, but "
        "it is not differential privacy. Do not report it as such; for a guarantee take a defence that accounts for an "
        "epsilon, as dp_sgd does for gradients and updates."
    )
    if bounded:
        said += (
            f" The bound on the detection of labels that {_families(bounded)} states holds for Gaussian gradients "
            "only; trust what attacks get."
        )
    return [Flag("noise_is_not_privacy", said, tuple(record.cell.key for record in noisy), "info")]


def keys_beyond_features(records: Sequence[Record]) -> list[Flag]:
    """Class keys protect as keys of as many dimensions as features go into the fixed layer, if these are fewer."""
    lengths = {
        record.cell.key: (record.notes[_DIMENSIONS], record.notes[_EFFECTIVE])
        for record in _measurements(records)
        if record.notes.get(_EFFECTIVE, math.inf) < record.notes.get(_DIMENSIONS, 0)
    }
    if not lengths:
        return []
    longest = max(dimensions for dimensions, _ in lengths.values())
    effective = min(features for _, features in lengths.values())
    said = (
        f"Class keys of {longest:,.0f} dimensions behind {effective:,.0f} features are as long as keys of "
        f"{effective:,.0f}: a generator follows their image in the features. Widen the network before its fixed layer, "
        "not the keys."
    )
    return [Flag("keys_beyond_features", said, tuple(lengths), "info")]


def _only_adds_noise(defence: Defence) -> bool:
    """Return whether it promises noise, or adds some to what goes out, and promises no more."""
    return defence.promise == "noise" or (defence.promise is None and defence.noise_norm(1) > 0)


def _measurements(records: Sequence[Record]) -> list[Record]:
    return [record for record in records if record.status is Status.DONE and record.cell.purpose == "measure"]


def _families(defences: Iterable[Defence]) -> str:
    return join_words(list(dict.fromkeys(map(family_of, defences))))


def incomplete(records: Sequence[Record]) -> list[Flag]:
    """Cells that were refused or failed are missing from every comparison; what they would have shown is not known."""
    flags = []
    severities: dict[Status, Severity] = {Status.FAILED: "doubt", Status.REFUSED: "info"}
    for status, severity in severities.items():
        missing = [record for record in records if record.status is status]
        if missing:
            where = list(
                dict.fromkeys(
                    f"{label_of(r.cell)} under {name_of(r.cell.defence)} ({setting_of(r.cell)})" for r in missing
                )
            )
            more = f" and {len(where) - 3} more" if len(where) > 3 else ""
            verb = "was" if len(missing) == 1 else "were"
            said = (
                f"{len(missing)} of {len(records)} cells {'failed' if status is Status.FAILED else f'{verb} refused'}: "
                f"{'; '.join(where[:3])}{more}. "
            )
            advice = "Reasons are listed with the cells; the comparison has gaps there."
            flags.append(Flag(f"cells_{status.value}", said + advice, tuple(r.cell.key for r in missing), severity))
    return flags
