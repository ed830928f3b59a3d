"""`leaktight compare`: which verdicts changed between audits, by which attack, and at what price."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from leaktight.findings.audit_comparison import AuditComparison, ComparedDefence

EXAMPLES = """
\b
Examples:
  leaktight compare before after
  leaktight compare noise keys transformations --out compare.html
"""


def compare(
    folders: Annotated[
        list[Path], typer.Argument(help="Two or more folders of audits.", metavar="A B [C...]", show_default=False)
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            help="Write an HTML page to this file; an earlier one is kept under a number.",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Compare audits with the first of them: verdicts, what the strongest attacks got, and prices.

    Where the same examples were attacked, differences are told victim by victim, with narrower intervals.
    """
    from leaktight.findings.audit_comparison import compare_audits

    comparison = compare_audits(folders)
    show(comparison)
    if out is not None:
        from leaktight.report.compare import render_comparison
        from leaktight.report.earlier import write_beside

        write_beside(out, render_comparison(comparison).encode(), tell=partial(typer.echo, err=True))
        typer.echo(f"\nPage: {out}")


def show(comparison: AuditComparison) -> None:
    """Print a comparison, folded to the terminal it is shown on."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    for indent, line in lines_of(comparison):
        typer.echo(fold(line, indent, width))


def fold(line: str, indent: int, width: int | None) -> str:
    """Return a line, indented and folded to a width, its later parts further in; whole if there is no width.

    Example:
        >>> print(fold("- one two three", 0, 10))
        - one two
          three
    """
    lead = " " * indent
    if width is None or not line:
        return f"{lead}{line}".rstrip()
    return textwrap.fill(
        line,
        width,
        initial_indent=lead,
        subsequent_indent=f"{lead}  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def lines_of(comparison: AuditComparison) -> Iterator[tuple[int, str]]:
    """Return what is printed, line by line, each with how far it is indented."""
    for audit in comparison.audits:
        yield 0, f"{audit.letter}: {audit.place} ({audit.plan.title})"
    yield 0, ""
    yield 0, comparison.headline
    shared = comparison.shared_lines
    if not shared:
        return
    for heading, lines in (
        ("Changed", [line for line in shared if line.changed]),
        ("The same", [line for line in shared if not line.changed]),
    ):
        if lines:
            yield 0, ""
            yield 0, f"{heading}:"
        for line in lines:
            yield from _line(comparison, line)
    for letter, names in comparison.alone().items():
        yield 0, ""
        yield 0, f"Only in {letter}:"
        yield from ((0, f"- {name}") for name in names)
    if comparison.settings:
        yield 0, ""
        yield 0, "What differs in what was measured:"
        yield from ((0, f"- {sentence}") for sentence in comparison.settings)


def _line(comparison: AuditComparison, line: ComparedDefence) -> Iterator[tuple[int, str]]:
    from leaktight.core.display import capital, join_words
    from leaktight.findings.comparison_words import say_got, say_price, say_read, say_use, say_words

    yield 0, f"- {capital(line.name)}: {say_words(comparison, line)}"
    beside = [
        (audit.letter, judgement, difference)
        for audit, judgement, difference in zip(comparison.audits, line.judgements, line.differences, strict=True)
        if judgement is not None
    ]
    got = [(letter, say_got(line, judgement)) for letter, judgement, _ in beside]
    prices = [(letter, price) for letter, judgement, _ in beside if (price := say_price(judgement))]
    for name, parts in (("attacks got", got), ("price", prices)):
        if parts:
            yield 4, f"{name}: {_together(parts)}"
    useless = [letter for letter, one, _ in beside if one.worst.useless and one.status != "useless"]
    if useless:
        yield 4, f"the model learned nothing in {join_words(useless)}"
    first = beside[0][0]
    for letter, _, difference in beside:
        if difference is not None:
            yield from (
                (4, f"{letter} beside {first}: {said}") for said in (say_read(difference), say_use(difference)) if said
            )


def _together(parts: list[tuple[str, str]]) -> str:
    """Say what audits have in common once.

    Example:
        >>> _together([("A", "8 of 8"), ("B", "8 of 8")]), _together([("A", "8 of 8"), ("B", "2 of 8")])
        ('8 of 8', 'A 8 of 8, B 2 of 8')
    """
    texts = {text for _, text in parts}
    if len(texts) == 1 and len(parts) > 1:
        return parts[0][1]
    return ", ".join(f"{letter} {text}" for letter, text in parts)
