"""Tables of plain text that fit a width: no name and no number is ever cut.

What names a row stands at its left, numbers at its right. Rows that belong together stand below a line of their own.
Where there is room for some of the numbers only, the table comes in parts. Where a name leaves no room for numbers, it
has a line of its own.
"""

from __future__ import annotations

import dataclasses
import itertools
import textwrap
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from rich.console import Console
from rich.text import Text

GAP = 2
_TIE = "\N{NO-BREAK SPACE}"


class Group(NamedTuple):
    """Rows that belong together.

    Args:
        heading: what stands on a line of its own above them; empty for nothing.
        rows: their cells, as many as there are titles.
    """

    heading: str
    rows: Sequence[Sequence[str]]


@dataclasses.dataclass(frozen=True)
class TextTable:
    """A table.

    Args:
        titles: what stands above each column.
        groups: the rows.
        names: how many of the first columns name a row; every part of a table has them.

    Example:
        >>> rows = [Group("Top-k (share 0.1): accuracy 80 %", [["dlg2019", "31.2 (29 to 33)", "11.0"]])]
        >>> for line in TextTable(["Attack", "PSNR in dB (95 %)", "Chance"], rows).lines(34):
        ...     print(line.plain)
                        PSNR in dB
          Attack            (95 %)  Chance
        ----------------------------------
        Top-k (share 0.1): accuracy 80 %
          dlg2019  31.2 (29 to 33)    11.0
    """

    titles: Sequence[str]
    groups: Sequence[Group]
    names: int = 1

    def fits(self, width: int) -> bool:
        """Return whether names leave room for the widest column of numbers beside them."""
        widths = self._widths(width)
        return self._beside(widths) + max(widths[self.names :], default=-GAP) <= width

    def parts(self, width: int) -> int:
        """Return in how many parts it comes."""
        return len(self._split(width))

    def lines(self, width: int) -> list[Text]:
        """Return its lines, none of which is wider than it may be."""
        found: list[Text] = []
        for number, columns in enumerate(self._split(width)):
            found += [Text()] if number else []
            found += self._part(columns, width)
        return found

    @cached_property
    def _indent(self) -> int:
        return GAP if any(group.heading for group in self.groups) else 0

    @cached_property
    def _widest(self) -> list[int]:
        """How wide the widest cell of each column is."""
        rows = [row for group in self.groups for row in group.rows]
        return [max((len(row[at]) for row in rows), default=0) for at in range(len(self.titles))]

    def _widths(self, width: int) -> list[int]:
        """Return how wide columns are: titles have one line if there is room for all, else two."""
        wide, narrow = (
            [max(cell, _title_width(title, lines)) for title, cell in zip(self.titles, self._widest, strict=True)]
            for lines in (1, 2)
        )
        return wide if self._indent + sum(wide) + GAP * (len(wide) - 1) <= width else narrow

    def _beside(self, widths: Sequence[int]) -> int:
        """Return where numbers begin if they stand beside the names."""
        return self._indent + sum(widths[: self.names]) + GAP * self.names

    def _room(self, width: int) -> int:
        """Return how wide the numbers of one part may be."""
        left = self._beside(self._widths(width)) if self.fits(width) else self._indent + GAP
        return max(1, width - left)

    def _split(self, width: int) -> list[list[int]]:
        """Return which columns of numbers stand in each part."""
        parts: list[list[int]] = [[]]
        widths, room, used = self._widths(width), self._room(width), -GAP
        for at in range(self.names, len(self.titles)):
            wide = min(widths[at], room)
            if parts[-1] and used + GAP + wide > room:
                parts.append([])
                used = -GAP
            parts[-1].append(at)
            used += GAP + wide
        return parts

    def _part(self, numbers: Sequence[int], width: int) -> list[Text]:
        beside = self.fits(width)
        head = self._row(self.titles, numbers, width, beside, bottom=True)
        blocks = [[self._row(row, numbers, width, beside) for row in group.rows] for group in self.groups]
        rule = max(len(line) for line in itertools.chain(head, *(row for rows in blocks for row in rows)))
        lines = [*map(Text, head), Text("-" * rule)]
        for number, (group, rows) in enumerate(zip(self.groups, blocks, strict=True)):
            if group.heading:
                lines += [Text()] if number else []
                lines += [Text(line, style="bold") for line in _wrap(group.heading, width, " " * GAP)]
            lines += [Text(line) for row in rows for line in row]
        return lines

    def _row(
        self, cells: Sequence[str], numbers: Sequence[int], width: int, beside: bool, bottom: bool = False
    ) -> list[str]:
        """Return the lines of a row; with its name on lines of its own, if there is no room beside it."""
        full, room = self._widths(width), self._room(width)
        shown = [*range(self.names), *numbers] if beside else list(numbers)
        widths = [full[at] if at < self.names else min(full[at], room) for at in shown]
        columns = [_wrap(cells[at], wide) for at, wide in zip(shown, widths, strict=True)]
        if bottom:
            height = max(map(len, columns), default=0)
            columns = [[""] * (height - len(column)) + column for column in columns]
        left = " " * (self._indent if beside else self._indent + GAP)
        lines = [
            (
                left
                + (" " * GAP).join(
                    _place(text, wide, at < self.names) for text, wide, at in zip(line, widths, shown, strict=True)
                )
            )
            for line in itertools.zip_longest(*columns, fillvalue="")
        ]
        name = ", ".join(cell for cell in cells[: self.names] if cell)
        if not beside and name:
            indent = " " * self._indent
            lines = [*(indent + line for line in _wrap(name, width - self._indent, " " * GAP)), *lines]
        return [line.rstrip() for line in lines]


def print_lines(where: Console, lines: Sequence[Text]) -> None:
    """Print lines that were laid out for this console."""
    for line in lines:
        where.print(line, soft_wrap=True, highlight=False)


def print_text(where: Console, text: str, style: str = "") -> None:
    """Print a paragraph, wrapped on a terminal alone."""
    where.print(Text(text, style=style), highlight=False, soft_wrap=not where.is_terminal)


def print_item(where: Console, item: str | Text) -> None:
    """Print an item of a list; on a terminal its lines stand below each other."""
    if not where.is_terminal:
        where.print(Text.assemble("- ", item), highlight=False, soft_wrap=True)
        return
    first, *rest = Text.assemble(item).wrap(where, where.width - GAP, overflow="fold")
    print_lines(where, [Text.assemble(mark, line) for mark, line in [("- ", first), *(("  ", line) for line in rest)]])


def _place(text: str, width: int, names: bool) -> str:
    return text.ljust(width) if names else text.rjust(width)


def _title_width(title: str, lines: int) -> int:
    """Return how wide a title is in one line, or in two."""
    words = _tie(title).split(" ")
    halves = [max(len(" ".join(words[:at])), len(" ".join(words[at:]))) for at in range(len(words))]
    return len(title) if lines == 1 else min(halves)


def _wrap(text: str, width: int, later: str = "") -> list[str]:
    """Return a text in lines of so many characters, broken between words if they allow it."""
    lines = textwrap.wrap(_tie(text), max(width, len(later) + 1), subsequent_indent=later, break_on_hyphens=False)
    return [line.replace(_TIE, " ") for line in lines] or [""]


def _tie(text: str) -> str:
    """Return a text that is not broken before a percent sign."""
    return text.replace(" %", f"{_TIE}%")
