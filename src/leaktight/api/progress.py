"""Progress of an audit that a program runs: a bar on a terminal, a line in a notebook, sentences alone elsewhere."""

from __future__ import annotations

import html
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, NamedTuple

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress
from rich.text import Text

from leaktight.running.scheduler import Progress, Step

PACE = 0.5
"""How many seconds lie at least between two changes of a notebook's line."""


class Watcher(NamedTuple):
    """Whoever watches an audit.

    Args:
        step: is told of each step; None if nobody is.
        say: is given the sentences that stay, such as the first answer; None if nobody wants them.
    """

    step: Progress | None = None
    say: Callable[[str], None] | None = None


@contextmanager
def show_progress(shown: bool | Progress) -> Iterator[Watcher]:
    """Return what is told of an audit in the block.

    Args:
        shown: whether to show it here; or a function of your own that is told of each step instead.
    """
    if not isinstance(shown, bool):
        yield Watcher(shown)
    elif shown and _is_notebook():
        line = _NotebookLine()
        yield Watcher(line.step, line.say)
        line.end()
    elif shown and (console := Console(stderr=True)).is_terminal:
        with _bar(console) as watcher:
            yield watcher
    elif shown:
        yield Watcher(say=lambda sentence: console.print(Text(sentence), highlight=False, soft_wrap=True))
    else:
        yield Watcher()


def _is_notebook() -> bool:
    """Return whether this is the kernel of a notebook, which shows HTML; a terminal of IPython does not."""
    ipython: Any = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and "IPKernelApp" in shell.config


class _NotebookLine:
    """One line below a cell that changes in place."""

    def __init__(self) -> None:
        self._display: Any = import_module("IPython.display").display
        self._last = 0.0
        self._handle = self._display(_line("preparing", 0, 0), raw=True, display_id=True)

    def step(self, step: Step) -> None:
        """Take in how far the audit is."""
        if time.monotonic() - self._last >= PACE:
            self._last = time.monotonic()
            self._handle.update(_line(step.text, step.done, step.total), raw=True)

    def say(self, sentence: str) -> None:
        """Show a sentence that stays, below the line."""
        self._display({"text/plain": sentence, "text/html": f"<p>{html.escape(sentence)}</p>"}, raw=True)

    def end(self) -> None:
        """Say that it is done."""
        self._handle.update({"text/plain": "The audit is done."}, raw=True)


def _line(text: str, done: float, total: int) -> dict[str, str]:
    """Return a line for whatever shows it: with a bar where there is HTML."""
    count = f"{int(done)} of {total}, " if total else ""
    bar = f'<progress value="{done:.2f}" max="{total}"></progress> ' if total else ""
    return {"text/plain": f"{count}{text}", "text/html": f"{bar}<small>{html.escape(count + text)}</small>"}


@contextmanager
def _bar(console: Console) -> Iterator[Watcher]:
    columns = TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with RichProgress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("preparing", total=None)

        def step(step: Step) -> None:
            bar.update(task, total=step.total, completed=step.done, description=step.text)

        yield Watcher(step, lambda sentence: console.print(Text(sentence), highlight=False))
