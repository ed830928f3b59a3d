"""Progress: what runs, how far it is and how long it still takes. A bar on a terminal, else a line for each cell."""

from __future__ import annotations

import dataclasses
import math
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn
from rich.text import Text

from leaktight.cli.text_table import print_text
from leaktight.core.display import duration
from leaktight.running.forecast import Estimate

if TYPE_CHECKING:
    from leaktight.core.record import Record
    from leaktight.plans.plan import Plan
    from leaktight.running import Step
    from leaktight.running.worker_pool import Workers

SILENCE = 30.0
"""After how many seconds something is said where there is no terminal, even if nothing has ended."""


class Left(ProgressColumn):
    """How long it still takes, by the last estimate and the time that has passed since."""

    def render(self, task: Task) -> Text:
        """Show it, once it is known."""
        left: Estimate | None = task.fields["left"]
        if left is None or task.finished:
            return Text()
        seconds = left.seconds - (task.get_time() - task.fields["at"])
        return Text(str(Estimate(seconds, left.at_least)) if seconds > 0 else "longer than expected")


class _Lines(Progress):
    """A bar, and below it what is under way: beside it, there would be no room for a name."""

    def get_renderables(self) -> Iterable[RenderableType]:
        yield self.make_tasks_table(self.tasks)
        for task in self.tasks:
            yield Text(task.fields["what"], style="dim")


class Bar:
    """Shows on standard error what runs, how far it is, how fast it goes and how long it still takes.

    Args:
        console: where to show it; by default standard error.
        quiet: whether to show nothing.
        title: what is said before the first step; an audit says it by `begin`.
        steady: whether all steps take about as long, so that their pace says how long it still takes.
        clock: what tells the time in seconds.
    """

    def __init__(
        self,
        console: Console | None = None,
        quiet: bool = False,
        title: str = "",
        steady: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._where = console or Console(stderr=True)
        self.quiet, self._steady, self._clock = quiet, steady, clock
        self._started = self._phase = self._spoke = clock()
        self._title, self._done = title, 0.0
        columns = (
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            Left(),
        )
        self._progress = _Lines(
            *columns,
            console=self._where,
            disable=quiet or not self._where.is_terminal,
            transient=True,
            get_time=clock,
        )
        fields: dict[str, Any] = {"what": "preparing", "rate": "", "left": None, "at": 0.0}
        self._task = self._progress.add_task("", total=None, **fields)

    def begin(self, plan: Plan, workers: Workers) -> None:
        """Say what is about to run."""
        from leaktight.cli.plan_title import title_of_plan

        self.say(title_of_plan(plan, workers))

    def say_first_answer(self, records: Sequence[Record], again: bool = False) -> None:
        """Say what was found without a defence.

        Args:
            records: what was measured.
            again: whether something was said of it already, before the searches.
        """
        from leaktight.findings.first_answer import first_answer

        self.say(first_answer(records, again))

    def say(self, sentence: str) -> None:
        """Show a sentence that stays."""
        if not self.quiet:
            self._spoke = self._clock()
            print_text(self._where, sentence)

    def step(self, step: Step) -> None:
        """Take in how far it is."""
        now = self._clock()
        if self._title:
            self.say(self._title)
            self._title = ""
        if step.done < self._done:
            # The next part of the work begins, at a pace of its own.
            self._phase = now
        self._done = step.done
        speed = step.done / (now - self._phase) if now > self._phase else 0.0
        rate = f"{60 * speed:.3g}/min" if speed else ""
        if self._steady and speed:
            step = dataclasses.replace(step, left=Estimate((step.total - step.done) / speed))
        kept = f" ({step.kept} cells kept)" if step.kept else ""
        if self._progress.disable:
            if step.status is not None or now - self._spoke >= SILENCE:
                self.say(_line(step, kept, rate))
            return
        self._progress.update(
            self._task,
            total=step.total,
            completed=step.done,
            what=f"{step.text}{kept}",
            rate=rate,
            left=step.left,
            at=now,
        )

    def end(self) -> None:
        """Say how long it took, and how much memory."""
        memory = peak_memory()
        said = f"Took {duration(self._clock() - self._started)}"
        self.say(f"{said}; no process held more than {memory / 2**30:.1f} GiB." if memory else f"{said}.")
        if self._where.is_terminal:
            self.say("")

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Clear the bar away."""
        self._progress.stop()


def _line(step: Step, kept: str, rate: str) -> str:
    """Return a step as one line: how many, what came of what, how fast, and how long it still takes."""
    place = f"{math.floor(step.done)}/{step.total}"
    came = "" if step.status is None else f": {step.status}"
    took = "" if step.status is None or not step.seconds else f" in {duration(step.seconds)}"
    left = "" if step.left is None or step.done >= step.total else str(step.left)
    more = ", ".join(part for part in (rate, left) if part)
    return f"{place} {step.text}{kept}{came}{took}{f' ({more})' if more else ''}"


def peak_memory() -> int:
    """Return how many bytes the largest process of this command held, workers included; 0 where nobody can tell."""
    try:
        import resource
    except ImportError:
        return 0
    usage = (resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    # Linux counts in kilobytes, macOS in bytes.
    return max(usage) * (1 if sys.platform == "darwin" else 1024)
