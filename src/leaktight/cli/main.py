"""The entry point: one command per file, and one place where errors become messages."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from leaktight import __version__
from leaktight.cli import (
    attack_more,
    audit,
    certificates,
    compare,
    explain,
    export,
    gate,
    init,
    layers,
    listing,
    report,
    reproduce,
    search,
    split,
    train,
)
from leaktight.cli.interruption import interruptible, terminable
from leaktight.cli.plain_help import PlainCommand, PlainGroup
from leaktight.core.allocator import keep_memory
from leaktight.core.errors import LeaktightError
from leaktight.core.threads import rest_soon

USAGE_ERROR = 2

EXAMPLES = """
\b
Examples:
  leaktight audit                              is there a leak? bundled data
  leaktight audit --model mine.models:net --data mine.npz --budget 10m
  leaktight attack-more leaktight-quick        attack harder what did not leak
  leaktight init audit.toml                    write a commented plan
  leaktight init --data my.csv:label           a plan for your own table
  leaktight audit audit.toml                   run it; again to resume
  leaktight report leaktight-audit --redact    to pass on, no private pixel
  leaktight gate leaktight-audit --accuracy-loss 2  for a build server
  leaktight compare before after               which verdicts changed
  leaktight explain gaussian_noise             what it does, and its settings
  leaktight layers --data people.csv:income --property sex
  leaktight search --model convnet --data photos
  leaktight train audit.toml --backend flower  here, or on Flower
  leaktight certificates certificates          keys for two machines
  leaktight split label-party label.toml       on the one
  leaktight split feature-party feature.toml   on the other
  leaktight reproduce polarization-network     a paper's experiment
"""

app = typer.Typer(
    name="leaktight",
    cls=PlainGroup,
    help="What do shared messages leak, and what does each defence do about it, at what cost in accuracy?",
    epilog=EXAMPLES,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("audit", cls=PlainCommand, epilog=audit.EXAMPLES)(interruptible(audit.audit))
app.command("attack-more", cls=PlainCommand, epilog=attack_more.EXAMPLES)(interruptible(attack_more.attack_more))
app.command("report", cls=PlainCommand, epilog=report.EXAMPLES)(interruptible(report.report))
app.command("gate", cls=PlainCommand, epilog=gate.EXAMPLES)(interruptible(gate.gate))
app.command("compare", cls=PlainCommand, epilog=compare.EXAMPLES)(interruptible(compare.compare))
app.command("layers", cls=PlainCommand, epilog=layers.EXAMPLES)(interruptible(layers.layers))
app.command("search", cls=PlainCommand, epilog=search.EXAMPLES)(interruptible(search.search))
app.command("reproduce", cls=reproduce.ReproduceCommand, epilog=reproduce.EXAMPLES)(interruptible(reproduce.reproduce))
app.command("train", cls=PlainCommand, epilog=train.EXAMPLES)(interruptible(train.train))
app.add_typer(split.app, name="split")
app.command("certificates", cls=PlainCommand, epilog=certificates.EXAMPLES)(interruptible(certificates.certificates))
app.command("export", cls=PlainCommand, epilog=export.EXAMPLES)(interruptible(export.export))
app.command("init", cls=PlainCommand, epilog=init.EXAMPLES)(interruptible(init.init))
app.command("list", cls=PlainCommand, epilog=listing.EXAMPLES)(interruptible(listing.list_kinds))
app.command("explain", cls=PlainCommand, epilog=explain.EXAMPLES)(interruptible(explain.explain))


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"leaktight {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Take the options that come before a command."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    The code is 0 if all is well, 2 for a fault of what was given, 130 after Ctrl-C and 143 after SIGTERM.

    Args:
        arguments: the words after `leaktight`; None takes those of the process.
    """
    rest_soon()
    keep_memory()
    try:
        with terminable():
            app(args=arguments, prog_name="leaktight")
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else int(done.code is not None)
    except LeaktightError as error:
        typer.echo(_folded(f"Error: {_printable(str(error))}"), err=True)
        return USAGE_ERROR
    except MemoryError:
        typer.echo("Error: There is not enough memory for that. Name smaller files, or a part of them.", err=True)
        return USAGE_ERROR
    return 0


def _folded(text: str) -> str:
    """Return a text in lines that a terminal does not break within words; whole where standard error is none."""
    width = shutil.get_terminal_size().columns if sys.stderr.isatty() else None
    return "\n".join(compare.fold(line, 0, width) for line in text.split("\n"))


def _printable(text: str) -> str:
    """Return a text without control characters: what others wrote into a file does not steer this terminal."""
    return "".join(sign if sign.isprintable() or sign == "\n" else f"\\x{ord(sign):02x}" for sign in text)
