"""The table of an audit on the terminal: attacks below the defence that they met, a table for each kind of leak."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from leaktight.cli.text_table import Group, TextTable
from leaktight.core.display import capital
from leaktight.core.metric import Reading
from leaktight.findings.column import NOTHING, Column
from leaktight.findings.display import STAGES, name_of
from leaktight.findings.kind import LeakKind, first_kind, leak_kinds, terminal_columns
from leaktight.findings.layer_risk import of_layers_alone
from leaktight.findings.rows import Row
from leaktight.findings.utility import ACCURACY, utility_name


def table(rows: Sequence[Row], width: int) -> list[Text]:
    """Return the rows of a summary as lines.

    A setting that all rows share stands above them. How good the model is stands beside the name of the defence, unless
    an attacker who sat in the training run changed it.

    Args:
        rows: what was measured.
        width: how wide lines may be.
    """
    tables = _by_kind([row for row in rows if not of_layers_alone(row)])
    lines: list[Text] = []
    for kind, here in tables.items():
        heading = f"Numbers, {kind.heading.lower()}" if len(tables) > 1 else "Numbers"
        common = ", ".join(_common(here))
        lines += [Text(), Text(f"{heading} ({common}):" if common else f"{heading}:")]
        lines += _table(kind, here, width)
    return lines


def _table(kind: LeakKind, rows: Sequence[Row], width: int) -> list[Text]:
    groups: dict[tuple[int, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.scenario, row.defence.key), []).append(row)
    beside = all(len({_use(row) for row in group if row.utility}) <= 1 for group in groups.values())
    settings = _settings(rows)
    numbers = [column for column in terminal_columns(kind) if any(column.text(row) != NOTHING for row in rows)]
    if not beside:
        numbers.append(Column(capital(_utilities(rows)), _use))
    columns = [*settings, *numbers]
    layout = TextTable(
        ["Attack", *(column.title for column in columns)],
        [
            Group(
                _heading(group, beside),
                [[row.title, *(column.text(row) for column in columns)] for row in group],
            )
            for group in groups.values()
        ],
        names=1 + len(settings),
    )
    return layout.lines(width)


def _heading(rows: Sequence[Row], beside: bool) -> str:
    """Return the line above the attacks that met a defence."""
    row = next((row for row in rows if row.utility is not None), rows[0])
    where = f"Scenario {row.scenario}, {name_of(row.defence)}" if row.among > 1 else capital(name_of(row.defence))
    return f"{where}: {utility_name(row.utility)} {_use(row)}" if beside and row.utility is not None else where


def _by_kind(rows: Sequence[Row]) -> dict[LeakKind, list[Row]]:
    """Return the rows in the table of the kind of leak that they are about.

    What has no table of its own, as labels that come with an update, stands in that of the first kind. What came to
    nothing stands where the same attack came to something, and else in the first table.
    """
    kinds = leak_kinds()
    own = {
        id(row): next((kind for kind in kinds if kind.is_tabled(row)), kinds[0] if first_kind(row) else None)
        for row in rows
    }
    by_attack = {row.attack: kind for row in reversed(rows) if (kind := own[id(row)]) is not None}
    first = next((kind for kind in kinds if kind in by_attack.values()), kinds[0])
    found: dict[LeakKind, list[Row]] = {}
    for row in rows:
        found.setdefault(own[id(row)] or by_attack.get(row.attack, first), []).append(row)
    return {kind: found[kind] for kind in kinds if kind in found}


def _common(rows: Sequence[Row]) -> list[str]:
    """Return the settings that all rows share, in words."""
    sizes, stages = {row.batch_size for row in rows}, {row.stage for row in rows}
    return [
        *(f"batches of {size}" for size in sizes if len(sizes) == 1),
        *(STAGES.get(stage, stage) for stage in stages if len(stages) == 1),
    ]


def _settings(rows: Sequence[Row]) -> list[Column]:
    """Return a column for each setting that rows differ in."""
    found = []
    if len({row.batch_size for row in rows}) > 1:
        found.append(Column("Batch", lambda row: str(row.batch_size)))
    if len({row.stage for row in rows}) > 1:
        found.append(Column("When", lambda row: STAGES.get(row.stage, row.stage)))
    return found


def _utilities(rows: Sequence[Row]) -> str:
    names = dict.fromkeys(utility_name(row.utility) for row in rows if row.utility is not None)
    return " or ".join(names) or utility_name(None)


def _use(row: Row) -> str:
    utility: Reading | None = row.utility
    if utility is None:
        return NOTHING
    return f"{100 * utility.value:.1f} %" if utility.name == ACCURACY else f"{utility.value:.3f}"
