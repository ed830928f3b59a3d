"""`leaktight split`: take part in split learning between two machines, as the party with the labels or as the one with the features."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Self

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from leaktight.cli.audit import INTERRUPTED

if TYPE_CHECKING:
    from leaktight.wire import Outcome, Standing

MEGABYTE = 1e6
EXAMPLES = """
\b
Examples:
  leaktight certificates certificates                       once; give each party its folder
  leaktight init --scenario label-party label.toml
  leaktight init --scenario feature-party feature.toml
  leaktight split label-party label.toml                    on one machine
  leaktight split feature-party feature.toml                on the other
"""

app = typer.Typer(
    help="Train a network that is cut between two machines, each with its own half of data and model.",
    epilog=EXAMPLES,
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
PartyFileArgument = Annotated[
    Path, typer.Argument(help="The party's settings in TOML; `leaktight init` writes them.", metavar="FILE", show_default=False)
]


@app.command("label-party", epilog=EXAMPLES)
def label_party(file: PartyFileArgument) -> None:
    """Take part as the party that has the labels and the layers after the cut.

    Run the same command again after an interruption: both parties go on from a step that they have in common.
    """
    _take_part("label-party", file)


@app.command("feature-party", epilog=EXAMPLES)
def feature_party(file: PartyFileArgument) -> None:
    """Take part as the party that has the features and the layers before the cut.

    Run the same command again after an interruption: both parties go on from a step that they have in common.
    """
    _take_part("feature-party", file)


def _take_part(role: str, file: Path) -> None:
    from leaktight.wire import read_party_file, take_part

    settings = read_party_file(file)
    try:
        with StepBar() as bar:
            outcome = take_part(role, settings, bar.tell, bar.step)
    except KeyboardInterrupt:
        typer.echo("Interrupted: checkpoints are kept; run the same command to go on.", err=True)
        raise typer.Exit(INTERRUPTED) from None
    typer.echo(summary(outcome))


class StepBar:
    """Shows on standard error how far a party is, and how busy its line: no bar if nobody watches, sentences always.

    Args:
        console: where to show it; by default standard error.
    """

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True, soft_wrap=True, highlight=False)
        columns = (
            TextColumn("step"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.description}", markup=False),
            TimeRemainingColumn(),
        )
        self._progress = Progress(
            *columns, console=self._console, disable=not self._console.is_terminal, transient=True, refresh_per_second=4
        )
        self._task = self._progress.add_task("", total=None)

    def step(self, standing: Standing) -> None:
        """Take in how far the party is."""
        if not self._progress.disable:
            self._progress.update(self._task, total=standing.rounds, completed=standing.step, description=describe(standing))

    def tell(self, sentence: str) -> None:
        """Show a sentence above the bar."""
        self._console.print(sentence, markup=False, highlight=False, soft_wrap=True)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Clear the bar away."""
        self._progress.stop()


def describe(standing: Standing) -> str:
    """Return loss, bandwidth both ways and round-trip, as far as they are known.

    Example:
        >>> from leaktight.wire import Standing
        >>> describe(Standing(5, 10, 0.25, 4_000_000, 8_000_000, 2.0, 0.0031))
        'loss 0.25, 2.0 MB/s out, 4.0 MB/s in, round-trip 3.1 ms'
    """
    seconds = max(standing.seconds, 1e-9)
    parts = [] if standing.loss is None else [f"loss {standing.loss:.3g}"]
    parts.append(f"{standing.sent / seconds / MEGABYTE:.1f} MB/s out")
    parts.append(f"{standing.received / seconds / MEGABYTE:.1f} MB/s in")
    if standing.round_trip is not None:
        parts.append(f"round-trip {1000 * standing.round_trip:.1f} ms")
    return ", ".join(parts)


def summary(outcome: Outcome) -> str:
    """Return what a party has at the end, in a few lines."""
    lines = [
        f"Done: {outcome.steps} steps; {outcome.sent / MEGABYTE:.1f} MB out, {outcome.received / MEGABYTE:.1f} MB in, {outcome.seconds:.1f} s."
    ]
    lines += [
        f"Test {'AUC' if one.name == 'auc' else one.name}: {one.value:.4f} ({one.low:.4f} to {one.high:.4f})"
        for one in outcome.readings
    ]
    return "\n".join([*lines, f"This party's half of the model: {outcome.checkpoint} (for its owner alone)"])
