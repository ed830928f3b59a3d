"""`leaktight gate`: pass or fail an audit by what a team demands, for a build server."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from leaktight.cli.compare import fold

FAILED = 1

EXAMPLES = """
\b
Examples:
  leaktight gate leaktight-audit
  leaktight gate leaktight-audit --leaks none --unknown any --accuracy-loss 2
  leaktight gate leaktight-audit --defence "top-k (share 0.1)" --kind images
  leaktight gate leaktight-audit --junit gate.xml --sarif gate.sarif --markdown gate.md
"""


def gate(
    folder: Annotated[
        Path,
        typer.Argument(help="The audit's folder, or its summary.json.", metavar="DIR", show_default=False),
    ],
    leaks: Annotated[str, typer.Option(help="How many leaking defences are allowed: none, any or a number.")] = "none",
    refuted: Annotated[str, typer.Option(help="How many refuted claims of an epsilon.")] = "none",
    unknown: Annotated[str, typer.Option(help="How many verdicts without enough evidence.")] = "none",
    reduced: Annotated[str, typer.Option(help="How many defences that leak in part.")] = "any",
    useless: Annotated[str, typer.Option(help="How many defences under which the model learned nothing.")] = "none",
    unfinished: Annotated[str, typer.Option(help="How many cells that failed or were not measured.")] = "none",
    accuracy_loss: Annotated[
        float | None,
        typer.Option(help="How many points of accuracy a defence may cost.", metavar="POINTS", show_default="any"),
    ] = None,
    defence: Annotated[
        list[str] | None,
        typer.Option(
            help="Look at this one only, by its kind or its name in the report; repeat it for more.",
            show_default="every defence; messages without one if there is none",
        ),
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(help="Look at this kind of leak only; repeat it for more.", show_default="every kind"),
    ] = None,
    junit: Annotated[Path | None, typer.Option(help="Write JUnit XML to this file.", metavar="FILE")] = None,
    sarif: Annotated[Path | None, typer.Option(help="Write SARIF 2.1.0 to this file.", metavar="FILE")] = None,
    markdown: Annotated[
        Path | None, typer.Option(help="Write a summary for a pull request to this file.", metavar="FILE")
    ] = None,
    plan: Annotated[
        Path | None,
        typer.Option(help="The file that SARIF points at, such as the plan.", metavar="FILE", show_default="DIR"),
    ] = None,
) -> None:
    """Pass or fail an audit: the exit code is 0 if it passes, 1 if it fails, 2 if it cannot be read.

    Each defence is judged by the audit's verdicts on it. An audit in which nothing was measured fails.
    """
    from leaktight.core.errors import InvalidValue
    from leaktight.findings.gate import Demands, hold_to, read_allowed
    from leaktight.findings.summary_file import read_summary
    from leaktight.report.gate_markdown import as_markdown
    from leaktight.report.junit import as_junit
    from leaktight.report.sarif import as_sarif

    allowed = {"leaks": leaks, "refuted": refuted, "unknown": unknown, "reduced": reduced, "useless": useless}
    demands = Demands(
        **{name: read_allowed(text, name) for name, text in allowed.items()},
        unfinished=read_allowed(unfinished, "unfinished"),
        accuracy_loss=accuracy_loss,
    )
    if plan is not None and not plan.is_file():
        raise InvalidValue(
            f"There is no file `{plan}` that SARIF could point at. Name your plan, or leave `--plan` out."
        )
    result = hold_to(read_summary(folder), demands, defence or (), kind or ())
    for path, text in (
        (junit, as_junit(result)),
        (sarif, as_sarif(result, _relative(plan or folder))),
        (markdown, as_markdown(result)),
    ):
        if path is not None:
            _write(path, text)
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    for line in (*result.criteria, result):
        typer.echo(fold(str(line), 0, width))
    if not result.passed:
        raise typer.Exit(FAILED)


def _relative(path: Path) -> str:
    """Return a place as code hosts want it: relative to where the command runs, if it lies below."""
    whole, here = path.absolute(), Path.cwd()
    return (whole.relative_to(here) if whole.is_relative_to(here) else Path(path.name)).as_posix()


def _write(path: Path, text: str) -> None:
    """Write a file for others to read: a build server takes it from here."""
    from leaktight.core.errors import InvalidValue
    from leaktight.core.private import reason

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InvalidValue(f"The file `{path}` cannot be written: {reason(error)}. Name another one.") from error
