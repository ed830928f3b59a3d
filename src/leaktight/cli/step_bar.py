"""The progress line of a party: on the terminal only; sentences and the summary always."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

if TYPE_CHECKING:
    from leaktight.wire import Outcome, Standing

MEGABYTE = 1e6


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
    return "\n".join([*lines, f"This party's half of the model: {outcome.model} (for its owner alone)"])
