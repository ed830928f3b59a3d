"""`leaktight report`: write an audit's report again."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

EXAMPLES = """
\b
Examples:
  leaktight report leaktight-audit
  leaktight report leaktight-audit --redact --out to-pass-on.html
  leaktight report leaktight-audit --format pdf
"""


def report(
    folder: Annotated[Path, typer.Argument(help="The audit's folder.", metavar="DIR", show_default=False)],
    out: Annotated[Path | None, typer.Option(help="The file to write.", show_default="in the audit's folder")] = None,
    redact: Annotated[
        bool, typer.Option("--redact", help="Leave out every private image and the seeds, to pass the report on.")
    ] = False,
    kind: Annotated[
        Literal["html", "pdf"],
        typer.Option("--format", help="The whole report as one HTML file, or its summary as a PDF of one page."),
    ] = "html",
    force: Annotated[
        bool, typer.Option("--force", help="Replace an earlier report; by default it is kept under a number.")
    ] = False,
) -> None:
    """Write the report of an audit, finished or not, as one HTML file, or its summary as a PDF of one page."""
    from leaktight.findings.summary import summarise
    from leaktight.findings.summary_file import write_summary
    from leaktight.report import write_report
    from leaktight.report.pdf import write_pdf
    from leaktight.running.store import Store

    with Store.read(folder) as store:
        summary = None if redact else summarise(store.records())
    write = write_pdf if kind == "pdf" else write_report
    typer.echo(write(folder, out, redact, summary, force, partial(typer.echo, err=True)))
    if out is None:
        write_summary(folder, redact, summary)
