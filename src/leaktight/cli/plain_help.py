"""Plain help: commands without the markup that Typer escapes, and one hint where a word of theirs is misspelt."""

from __future__ import annotations

from collections.abc import Iterable

import click
from typer.core import TyperCommand, TyperGroup

from leaktight.core.errors import closest

WHOLE = 1000
"""How many letters of what a command does are shown: all."""


class PlainCommand(TyperCommand):
    """A command whose help shows `[default: local]`.

    Where Rich is installed, Typer escapes the first bracket even if help is plain text, and the backslash is then
    shown.
    """

    def get_help(self, ctx: click.Context) -> str:
        """Return the help as plain text."""
        return super().get_help(ctx).replace(r"\[", "[")

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take the words of a command line; an option that is not there gets one hint."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            known = (name for parameter in self.get_params(ctx) for name in parameter.opts)
            raise click.UsageError(_say("option", error.option_name, known), ctx) from None


class PlainGroup(TyperGroup):
    """A group of commands that says of each what it does, and gives one hint where Typer and Click have their own."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what each command does, on as many lines as that takes: Click would cut it at the first."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, command.get_short_help_str(WHOLE)) for name, command in commands if command is not None]
            )

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that words name."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError:
            raise click.UsageError(_say("command", args[0], self.commands), ctx) from None


def _say(what: str, word: str, known: Iterable[str]) -> str:
    meant = closest(word, known)
    return f"No such {what} '{word}'.{f' Did you mean `{meant}`?' if meant else ''}"
