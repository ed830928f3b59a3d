"""`leaktight reproduce`: run a paper's experiment and show our numbers beside the published ones."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import click
import typer

from leaktight.cli.audit import SOME_FAILED
from leaktight.cli.interruption import stop_with
from leaktight.cli.output_options import Quiet
from leaktight.cli.plain_help import PlainCommand
from leaktight.cli.worker_options import Address, Engine, Workers, open_workers

EXAMPLES = """
\b
Examples:
  leaktight reproduce polarization-network
  leaktight reproduce polarization-network --scale small --data sets --json result.json
  leaktight reproduce split-label-leakage --scale small --data sets
  leaktight reproduce layer-leakage --scale small --data sets
  leaktight reproduce transformation-search --scale small --data sets
  leaktight reproduce class-keys --scale small --data sets
  leaktight reproduce polarization-network --scale paper --data sets --steps 1
"""

STANDARD_OUTPUT = "-"


class ReproduceCommand(PlainCommand):
    """A command whose `--json` may be followed by a file."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take the words of a command line; `--json` alone means standard output, as with other commands."""
        words = list(args)
        if "--json" in words:
            place = words.index("--json") + 1
            if place == len(words) or words[place].startswith("-"):
                words.insert(place, STANDARD_OUTPUT)
        return super().parse_args(ctx, words)


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
    out: Annotated[
        Path | None,
        typer.Option(help="The folder for the result and its audits.", show_default="leaktight-PAPER-SCALE"),
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
    quiet: Quiet = False,
    json: Annotated[
        str | None,
        typer.Option(
            help="Write the result there as JSON: numbers, no data. Without a file, print it on standard output, and "
            "nothing else there.",
            metavar="[FILE]",
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
    from leaktight.papers.check import tally
    from leaktight.papers.page import write_page
    from leaktight.papers.reproduction import RESULT_FILE

    chosen = find_paper(paper)
    order = Order(scale=scale, data=data or "", seed=seed, steps=steps)
    folder = out or Path(f"leaktight-{paper}-{scale}")
    # A run may take hours: better to know now that its result can be written.
    files = [folder / RESULT_FILE, *([Path(json)] if json and json != STANDARD_OUTPUT else [])]
    for file in files:
        check_writable(file)
    with (
        stop_with("finished cells are kept; run the same command to resume."),
        Bar(quiet=quiet) as bar,
        open_workers(engine, workers, address) as pool,
    ):
        done = run_paper(
            chosen,
            order,
            folder,
            workers=pool,
            progress=bar.step,
            on_begin=lambda sound: bar.begin(sound, pool),
        )
    bar.end()
    result = done.model_dump_json(indent=2)
    for file in files:
        write_private(file, f"{result}\n".encode())
    page = write_page(chosen, done, folder, tell=partial(typer.echo, err=True))
    if json == STANDARD_OUTPUT:
        typer.echo(result)
    elif quiet:
        typer.echo(f"{tally(done.checks)}\nPage: {page}")
    else:
        show(chosen, done)
        typer.echo(f"\nPage: {page}\nResult: {files[-1]}")
    if done.failed:
        for reason in reasons(done.failed, Status.FAILED):
            typer.echo(f"Failed: {reason}", err=True)
        raise typer.Exit(SOME_FAILED)
