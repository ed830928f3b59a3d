"""Plain help: the help of a command without the markup that Typer escapes for terminals in colour."""

from __future__ import annotations

import click
from typer.core import TyperCommand


class PlainCommand(TyperCommand):
    """A command whose help shows `[default: local]`.

    Where Rich is installed, Typer escapes the first bracket even if help is plain text, and the backslash is then
    shown.
    """

    def get_help(self, ctx: click.Context) -> str:
        """Return the help as plain text."""
        return super().get_help(ctx).replace(r"\[", "[")
