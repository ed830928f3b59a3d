"""The progress line of a party: on the terminal only; sentences and the summary always."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

if TYPE_CHECKING:
    from leaktight.wire import PartyProgress, PartyResult

MEGABYTE = 1e6


class StepBar:
    """Shows on standard error how far a party is, and how busy its connection: a bar on a terminal, sentences always.

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

    def step(self, progress: PartyProgress) -> None:
        """Take in how far the party is."""
        if not self._progress.disable:
            self._progress.update(
                self._task, total=progress.rounds, completed=progress.step, description=describe(progress)
            )

    def tell(self, sentence: str) -> None:
        """Show a sentence above the bar."""
        self._console.print(sentence, markup=False, highlight=False, soft_wrap=True)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Clear the bar away."""
        self._progress.stop()


def describe(progress: PartyProgress) -> str:
    """Return loss, bandwidth both ways and response time, as far as they are known.

    Example:
        >>> from leaktight.wire import PartyProgress
        >>> describe(PartyProgress(5, 10, 0.25, 4_000_000, 8_000_000, 2.0, 0.0031))
        'loss 0.25, 2.0 MB/s out, 4.0 MB/s in, response time 3.1 ms'
    """
    seconds = max(progress.seconds, 1e-9)
    parts = [] if progress.loss is None else [f"loss {progress.loss:.3g}"]
    parts.append(f"{progress.sent / seconds / MEGABYTE:.1f} MB/s out")
    parts.append(f"{progress.received / seconds / MEGABYTE:.1f} MB/s in")
    if progress.response_time is not None:
        parts.append(f"response time {1000 * progress.response_time:.1f} ms")
    return ", ".join(parts)


def summary(result: PartyResult) -> str:
    """Return what a party has at the end, in a few lines."""
    lines = [
        f"Done: {result.steps} steps; {result.sent / MEGABYTE:.1f} MB out, {result.received / MEGABYTE:.1f} MB in, "
        f"{result.seconds:.1f} s."
    ]
    for reading in result.readings:
        name = "AUC" if reading.name == "auc" else reading.name
        lines.append(f"Test {name}: {reading.value:.4f} ({reading.low:.4f} to {reading.high:.4f})")
    return "\n".join([*lines, f"This party's half of the model: {result.model} (for its owner alone)"])
