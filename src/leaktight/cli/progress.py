"""The progress bar: on the terminal only, and only while there is one."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

if TYPE_CHECKING:
    from leaktight.running import Step


class Rate(ProgressColumn):
    """How many jobs end in a minute."""

    def render(self, task: Task) -> Text:
        """Show the rate, once there is one."""
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{60 * speed:.3g}/min")


class Bar:
    """Shows on standard error how far an audit is, how fast it goes and when it will end; silent if nobody watches.

    Args:
        console: where to show it; by default standard error.
    """

    def __init__(self, console: Console | None = None) -> None:
        where = console or Console(stderr=True)
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            Rate(),
            TimeRemainingColumn(),
        )
        self._progress = Progress(*columns, console=where, disable=not where.is_terminal, transient=True)
        self._task = self._progress.add_task("preparing", total=None)

    def step(self, step: Step) -> None:
        """Take in how far the audit is."""
        kept = f" ({step.kept} cells kept)" if step.kept else ""
        self._progress.update(self._task, total=step.total, completed=step.done, description=f"{step.text}{kept}")

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Clear the bar away."""
        self._progress.stop()
