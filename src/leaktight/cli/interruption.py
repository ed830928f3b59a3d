"""What ends a command before it is done: Ctrl-C, or a request to terminate. Both stop what was started, and say so."""

from __future__ import annotations

import functools
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

import typer

INTERRUPTED = 128 + signal.SIGINT
TERMINATED = 128 + signal.SIGTERM
P = ParamSpec("P")
R = TypeVar("R")


class Terminated(KeyboardInterrupt):
    """A request to terminate, which ends a command as Ctrl-C does."""


@contextmanager
def stop_with(sentence: str) -> Iterator[None]:
    """Let Ctrl-C, or a request to terminate, end a command in the block with a sentence and an exit code of its own.

    Args:
        sentence: what a person should know, such as what is kept.
    """
    try:
        yield
    except KeyboardInterrupt as stop:
        terminated = isinstance(stop, Terminated)
        typer.echo(f"{'Terminated' if terminated else 'Interrupted'}: {sentence}", err=True)
        raise typer.Exit(TERMINATED if terminated else INTERRUPTED) from None


def interruptible(command: Callable[P, R]) -> Callable[P, R]:
    """Return a command that says a sentence when it is stopped, if it has none of its own."""

    @functools.wraps(command)
    def run(*words: P.args, **options: P.kwargs) -> R:
        with stop_with("the command is not done; run it again."):
            return command(*words, **options)

    return run


@contextmanager
def terminable() -> Iterator[None]:
    """Let a request to terminate (SIGTERM) raise in the block as Ctrl-C does."""

    def raise_terminated(*_: object) -> None:
        raise Terminated

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, raise_terminated)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
