"""`leaktight split`: take part in split learning between two machines, as the label party or as the feature party."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated

import typer

from leaktight.cli.interruption import interruptible, stop_with
from leaktight.cli.plain_help import PlainCommand, PlainGroup
from leaktight.cli.table_options import NONE_GIVEN, TableOptions, takes_table_options

EXAMPLES = """
\b
Examples:
  leaktight certificates certificates                       once; give each party its folder
  leaktight init --scenario label-party label.toml
  leaktight init --scenario feature-party feature.toml
  leaktight split label-party label.toml                    on one machine
  leaktight split feature-party feature.toml                on the other
"""

app = typer.Typer(
    cls=PlainGroup,
    help="Train a network that is cut between two machines, each with its own part of the data and the model.",
    epilog=EXAMPLES,
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
PartyFileArgument = Annotated[
    Path,
    typer.Argument(
        help="The party's configuration in TOML; `leaktight init` writes one.", metavar="FILE", show_default=False
    ),
]


@app.command("label-party", cls=PlainCommand, epilog=EXAMPLES)
@interruptible
@takes_table_options
def label_party(file: PartyFileArgument, table: TableOptions = NONE_GIVEN) -> None:
    """Take part as the party that has the labels and the layers after the cut.

    Run the same command again after an interruption: both parties resume from a step that they have in common.
    """
    _take_part("label-party", file, table)


@app.command("feature-party", cls=PlainCommand, epilog=EXAMPLES)
@interruptible
@takes_table_options
def feature_party(file: PartyFileArgument, table: TableOptions = NONE_GIVEN) -> None:
    """Take part as the party that has the features and the layers before the cut.

    Run the same command again after an interruption: both parties resume from a step that they have in common.
    """
    _take_part("feature-party", file, table)


def _take_part(role: str, file: Path, table: TableOptions) -> None:
    from leaktight.cli.step_bar import StepBar, summary
    from leaktight.wire import read_party_file, take_part

    settings = read_party_file(file)
    settings = dataclasses.replace(settings, data=table.apply(settings.data))
    with stop_with("checkpoints are kept; run the same command to resume."), StepBar() as bar:
        result = take_part(role, settings, bar.tell, bar.step)
    typer.echo(summary(result))
