"""`leaktight certificates`: make the certificates and keys by which machines know each other."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

EXAMPLES = """
\b
Examples:
  leaktight certificates certificates                                    for two processes on one machine
  leaktight certificates certificates --host labels.example --host 10.0.0.7
  leaktight certificates keys --name superlink --node client-0 --node client-1   for a deployment of Flower
"""
PARTIES = ("label-party", "feature-party")
NODES = "nodes"
"""The folder of nodes' keys, where `leaktight train --deploy` looks for them."""


def certificates(
    folder: Annotated[Path, typer.Argument(help="Where to make a folder for each party.", show_default=False)],
    host: Annotated[
        list[str] | None,
        typer.Option(help="A name or address of one of the machines, beside localhost; can be repeated."),
    ] = None,
    name: Annotated[
        list[str] | None,
        typer.Option(
            help="Whom to make a certificate for; can be repeated.", show_default="both parties of split learning"
        ),
    ] = None,
    node: Annotated[
        list[str] | None, typer.Option(help="A node of Flower to make a key for; can be repeated.", show_default=False)
    ] = None,
    days: Annotated[int, typer.Option(help="For how many days they are valid.")] = 365,
) -> None:
    """Make an authority, and a certificate with its private key for each party.

    The authority's own key is kept nowhere: nobody can make another certificate that these parties accept.
    """
    from leaktight.core.certificates import make_certificates, make_node_key

    for own in make_certificates(folder, name or PARTIES, host or (), days).values():
        typer.echo(f"Wrote {own.key.parent}: give it to {own.name} by a private channel, and keep no copy.")
    for name_of_node in node or ():
        private, public = make_node_key(folder / NODES, name_of_node)
        typer.echo(
            f"Wrote {private}: give it to {name_of_node}. Register {public.name} with `flwr supernode register`."
        )
