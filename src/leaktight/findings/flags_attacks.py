"""Flags about attacks: an attack that is weak makes any defence look good."""

from __future__ import annotations

from collections.abc import Sequence

from leaktight.captures import AsCaptured
from leaktight.core.defence import is_undefended
from leaktight.core.display import join_words
from leaktight.core.probe import Attempt, attack_of
from leaktight.core.record import Record, Status
from leaktight.core.threat import Knows
from leaktight.findings.adaptation import attacks_in, models_defence
from leaktight.findings.contest import beats, cells_of, main_reading
from leaktight.findings.display import family_of, name_of, rank
from leaktight.findings.flag import Flag
from leaktight.findings.kind import first_kind
from leaktight.findings.rows import Row, rows_of


def attack_at_chance(records: Sequence[Record]) -> list[Flag]:
    """An attack that finds nothing in undefended messages says nothing about a defence that it fails against too.

    That a single layer tells nothing is a finding about the layer.
    """
    flags = []
    groups: dict[str, list[Row]] = {}
    for row in rows_of(records):
        if (
            is_undefended(row.defence)
            and not row.layer
            and (reading := main_reading(row))
            and reading.chance is not None
        ):
            groups.setdefault(row.attack, []).append(row)
    for attack, rows in groups.items():
        blind = [row for row in rows if (kind := first_kind(row)) and not kind.beats_chance(row)]
        if blind:
            where = join_words([row.setting for row in blind])
            flags.append(
                Flag(
                    "attack_at_chance",
                    f"The attack {attack} did no better than guessing without any defence ({where}), so there its "
                    "failure against a defence shows nothing. "
                    "Give it more iterations or restarts, or use another attack.",
                    cells_of(blind),
                )
            )
    return flags


def only_non_adaptive(records: Sequence[Record]) -> list[Flag]:
    """A defence that everybody knows must be tried by an attacker who models it.

    Without such an attacker its protection is a guess.
    """
    by_defence: dict[str, list[Record]] = {}
    for record in records:
        cell = record.cell
        counts = record.status is Status.DONE and cell.purpose == "measure" and attack_of(cell.probe) is not None
        # What senders of captured messages did, if anything, nobody declared.
        if counts and not is_undefended(cell.defence) and not isinstance(cell.defence, AsCaptured):
            by_defence.setdefault(cell.defence.key, []).append(record)
    untried = [group for group in by_defence.values() if not any(_adaptive(record) for record in group)]
    if not untried:
        return []
    public = any(_knows_defence(record) for group in untried for record in group)
    assumed = (
        "although the threat model says that the attacker knows it"
        if public
        else "and an attacker will learn which defence is in use"
    )
    names = join_words(list(dict.fromkeys(family_of(group[0].cell.defence) for group in untried)))
    return [
        Flag(
            "only_non_adaptive",
            f"No attack that models the defence was run against {names}, {assumed}. Read the protection as an upper "
            "bound: an attacker who models the defence may get more.",
            tuple(record.cell.key for group in untried for record in group),
        )
    ]


def leakage_grows(records: Sequence[Record]) -> list[Flag]:
    """A stronger setting that leaks more than a weaker one points at an attack out of tune, or at too few victims.

    Of a suite its answer counts: its single attacks may be tried on other messages at each setting.
    """
    groups: dict[tuple[int, str, str, int, str], list[Row]] = {}
    rows = rows_of(records)
    for row in rows:
        if not is_undefended(row.defence) and row.defence.strength is not None:
            groups.setdefault((row.scenario, family_of(row.defence), row.attack, row.batch_size, row.stage), []).append(
                row
            )
    flags = []
    for (scenario, family, attack, batch_size, stage), swept in groups.items():
        bare = [
            r
            for r in rows
            if is_undefended(r.defence)
            and (r.scenario, r.attack, r.batch_size, r.stage) == (scenario, attack, batch_size, stage)
        ]
        ordered = bare[:1] + sorted(swept, key=lambda row: rank(row.defence))
        growing = [
            (weaker[-1], strong)
            for place, strong in enumerate(ordered)
            if (weaker := [weak for weak in ordered[:place] if beats(strong, weak)])
        ]
        if growing:
            steps = join_words(
                [f"from {name_of(weak.defence)} to {name_of(strong.defence)}" for weak, strong in growing]
            )
            flags.append(
                Flag(
                    "leakage_grows",
                    f"The attack {attack} gets more, not less, as {family} gets stronger: {steps} "
                    f"({swept[0].setting}). Use more victims, or tune the attack at the weaker setting.",
                    cells_of([row for pair in growing for row in pair]),
                )
            )
    return flags


def _adaptive(record: Record) -> bool:
    cell = record.cell
    return any(models_defence(attack, cell.probe, cell.defence) for attack in attacks_in(record))


def _knows_defence(record: Record) -> bool:
    probe = record.cell.probe
    return isinstance(probe, Attempt) and Knows.DEFENCE in probe.threat.knows
