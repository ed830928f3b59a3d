"""`leaktight report`: write an audit's report again."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from leaktight.cli.output_options import Json

if TYPE_CHECKING:
    from leaktight.metrics.privacy_aware import Claim

NOT_JUDGED = "No defence can be judged: that takes an attack on images and the accuracy with and without the defence."
EXAMPLES = """
\b
Examples:
  leaktight report leaktight-audit
  leaktight report leaktight-audit --redact --out to-pass-on.html
  leaktight report leaktight-audit --format pdf
  leaktight report leaktight-audit --claim 10,0.1,0.02
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
    claim: Annotated[
        str | None,
        typer.Option(
            help="Judge each defence of images by Gao et al. 2021, Definition 2: as 10,0.1,0.02, PSNR below 10 dB for "
            "all but 0.1 of the images at a loss of accuracy below 0.02.",
            metavar="DB,SHARE,LOSS",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Write the report of an audit, finished or not, as one HTML file, or its summary as a PDF of one page."""
    from leaktight.findings.privacy_claim import judge_claim
    from leaktight.findings.summary import summarise
    from leaktight.findings.summary_file import as_text, summary_of, write_summary
    from leaktight.report import write_report
    from leaktight.report.pdf import write_pdf
    from leaktight.running.store import Store

    asked = None if claim is None else _claim(claim)
    with Store.read(folder) as store:
        records, plan, versions, missing = store.records(), store.plan(), store.versions(), store.missing()
    summary = None if redact else summarise(records)
    write = write_pdf if kind == "pdf" else write_report
    path = write(folder, out, redact, summary, force, partial(typer.echo, err=True))
    if out is None:
        write_summary(folder, redact, summary)
    if json:
        typer.echo(as_text(summary_of(records, plan, versions, redact, summary, missing)), nl=False)
    else:
        typer.echo(path)
    if asked is not None:
        said = [str(each) for each in judge_claim(records, asked)]
        typer.echo("\n".join(said or [NOT_JUDGED]), err=json)


def _claim(text: str) -> Claim:
    """Return the claim that a text like 10,0.1,0.02 makes."""
    from leaktight.core.errors import InvalidValue
    from leaktight.metrics.privacy_aware import Claim

    try:
        epsilon, delta, gamma = map(float, text.split(","))
    except ValueError:
        raise InvalidValue(
            f"The `--claim` must be a PSNR in dB, a share of images and a loss of accuracy, as 10,0.1,0.02. Got "
            f"{text!r} instead."
        ) from None
    return Claim(epsilon=epsilon, delta=delta, gamma=gamma)
