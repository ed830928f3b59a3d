"""`leaktight reproduce`: run a paper's experiment and show our numbers beside the published ones."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from leaktight.cli.audit import SOME_FAILED
from leaktight.cli.interruption import stop_with
from leaktight.cli.worker_options import Address, Engine, Workers, open_workers

EXAMPLES = """
\b
Examples:
  leaktight reproduce polarization-network
  leaktight reproduce polarization-network --scale small --data sets --json ours.json
  leaktight reproduce split-label-leakage --scale small --data sets
  leaktight reproduce layer-leakage --scale small --data sets
  leaktight reproduce transformation-search --scale small --data sets
  leaktight reproduce class-keys --scale small --data sets
  leaktight reproduce polarization-network --scale paper --data sets --steps 1
"""


def reproduce(
    paper: Annotated[
        str,
        typer.Argument(
            help="Which paper: polarization-network, split-label-leakage, layer-leakage, transformation-search or "
            "class-keys.",
            metavar="PAPER",
            show_default=False,
        ),
    ],
    scale: Annotated[
        Literal["smoke", "small", "paper"],
        typer.Option(help="Minutes on bundled data, within the hour on real sets, or the full experiment."),
    ] = "smoke",
    data: Annotated[
        Path | None,
        typer.Option(help="The folder with real sets, a sub-folder each: cifar10, mnist, ctr, ...", show_default=False),
    ] = None,
    json: Annotated[Path | None, typer.Option(help="Write the result to this file.", show_default=False)] = None,
    out: Annotated[
        Path | None, typer.Option(help="The folder for the audits.", show_default="leaktight-PAPER-SCALE")
    ] = None,
    workers: Workers = None,
    engine: Engine = "local",
    address: Address = None,
    seed: Annotated[int, typer.Option(help="What all randomness derives from.")] = 0,
    steps: Annotated[
        int | None,
        typer.Option(
            help="Cut rounds, local steps and attack iterations to so many: a proof that every part runs.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Reproduce a paper's experiment and show our numbers beside the published ones.

    Finished cells are kept: after an interruption the same command resumes.
    """
    from leaktight.cli.comparison_table import show
    from leaktight.cli.outcome import reasons
    from leaktight.cli.progress import Bar
    from leaktight.core.private import check_writable, write_private
    from leaktight.core.record import Status
    from leaktight.papers import Order, find_paper
    from leaktight.papers import reproduce as run_paper
    from leaktight.papers.page import write_page

    chosen = find_paper(paper)
    order = Order(scale=scale, data=data or "", seed=seed, steps=steps)
    folder = out or Path(f"leaktight-{paper}-{scale}")
    if json is not None:
        # A run may take hours: better to know now that its result can be written.
        check_writable(json)
    with (
        stop_with("finished cells are kept; run the same command to resume."),
        Bar() as bar,
        open_workers(engine, workers, address) as pool,
    ):
        done = run_paper(chosen, order, folder, workers=pool, progress=bar.step)
    show(chosen, done)
    typer.echo(f"\nPage: {write_page(chosen, done, folder, tell=typer.echo)}")
    if json is not None:
        write_private(json, done.model_dump_json(indent=2).encode() + b"\n")
        typer.echo(f"\nWritten: {json}")
    if done.failed:
        for reason in reasons(done.failed, Status.FAILED):
            typer.echo(f"Failed: {reason}", err=True)
        raise typer.Exit(SOME_FAILED)
