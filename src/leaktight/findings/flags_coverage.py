"""Flags about what was not attacked: other moments of a training, and several messages at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from leaktight.core.defence import is_undefended
from leaktight.core.display import join_words
from leaktight.core.probe import attack_of
from leaktight.core.record import Record, Status
from leaktight.findings.adaptation import attacks_in
from leaktight.findings.display import STAGES, family_of
from leaktight.findings.flag import Flag
from leaktight.findings.kind import leak_kinds


def one_message_at_a_time(records: Sequence[Record]) -> list[Flag]:
    """What a defence draws anew for every message averages out over messages about the same examples.

    So an attack must have joined them, or its scores were added up over passes. Whoever trains for several rounds sends
    several such messages.
    """
    groups: dict[tuple[str, str], list[Record]] = {}
    for record in _attempts(records):
        cell = record.cell
        if cell.defence.redraws and not is_undefended(cell.defence) and cell.scenario.repeats_examples(record.notes):
            groups.setdefault((cell.scenario.key, cell.defence.key), []).append(record)
    alone = [group for group in groups.values() if not any(map(_joins_messages, group))]
    if not alone:
        return []
    names = join_words(list(dict.fromkeys(family_of(group[0].cell.defence) for group in alone)))
    said = (
        f"What is drawn under {names} is new in every message, and every attack took messages one at a time, although "
        "a training run sends several about the same examples: over them it averages out. Add an attack that joins "
        'messages (`messages = "joined"`, or scores added up over passes).'
    )
    return [Flag("one_message_at_a_time", said, tuple(record.cell.key for group in alone for record in group))]


def _joins_messages(record: Record) -> bool:
    """Return whether several messages about the same examples were taken together."""
    joined = {kind.joined for kind in leak_kinds()}
    # A redacted reading has no passes left to count.
    added_up = any(reading.name in joined and len(reading.each) != 1 for reading in record.readings)
    return added_up or any(attack.joins for attack in attacks_in(record))


def one_stage_attacked(records: Sequence[Record]) -> list[Flag]:
    """What a message tells changes while the model learns; one moment says nothing of the others.

    Before training images are as a rule rebuilt best, so that this moment alone is a note and any other one a doubt. An
    attacker who sits in the training attacks all of it.
    """
    groups: dict[str, list[Record]] = {}
    for record in _attempts(records):
        attack = attack_of(record.cell.probe)
        if not record.cell.scenario.untrained and attack is not None and not attack.active:
            groups.setdefault(record.cell.scenario.key, []).append(record)
    numbers = dict.fromkeys(record.cell.scenario.key for record in records if record.cell.purpose == "measure")
    flags = []
    for key, group in groups.items():
        stages = {record.cell.stage for record in group}
        offered = group[0].cell.scenario.stages
        if len(stages) > 1 or "training" in stages or len(offered) < 2:
            continue
        [stage] = stages
        where = f"In scenario {list(numbers).index(key) + 1}: messages" if len(numbers) > 1 else "Messages"
        said = (
            f"{where} were attacked {STAGES[stage]} only, and may tell more at another moment. "
            f"Add stages to the grid ({join_words([f'`{other}`' for other in offered if other != stage])})."
        )
        keys = tuple(record.cell.key for record in group)
        flags.append(Flag("one_stage_attacked", said, keys, "info" if stage == "initial" else "doubt"))
    return flags


def _attempts(records: Sequence[Record]) -> Iterator[Record]:
    """Return what was measured by an attack."""
    for record in records:
        if (
            record.status is Status.DONE
            and record.cell.purpose == "measure"
            and attack_of(record.cell.probe) is not None
        ):
            yield record
