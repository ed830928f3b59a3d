"""`leaktight init`: write a commented plan to start from."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from leaktight.cli.table_options import NONE_GIVEN, TableOptions, takes_table_options

READY = Path(__file__).parents[1] / "plans" / "examples"
"""Where plans lie that are ready to run."""


class Template(StrEnum):
    """What a plan starts from."""

    FEDERATED = "federated"
    SPLIT = "split"
    LABEL_PARTY = "label-party"
    FEATURE_PARTY = "feature-party"

    @property
    def path(self) -> Path:
        """The file."""
        name = "audit" if self is Template.FEDERATED else self.value.replace("-", "_")
        return Path(__file__).parent / f"{name}.toml"

    @property
    def command(self) -> str:
        """What runs it."""
        return f"split {self.value}" if self in (Template.LABEL_PARTY, Template.FEATURE_PARTY) else "audit"


EXAMPLES = """
\b
Example:
  leaktight init audit.toml && leaktight audit audit.toml
  leaktight init --data loans.csv:default loans.toml
  leaktight init --data loans.csv:default --scenario split labels.toml
  leaktight init --example gan
  leaktight init --scenario label-party label.toml && leaktight init --scenario feature-party feature.toml
"""


@takes_table_options
def init(
    file: Annotated[
        Path | None,
        typer.Argument(help="The file to write; one that is there is left alone.", show_default="audit.toml"),
    ] = None,
    scenario: Annotated[
        Template,
        typer.Option(
            help="Who learns from whom: participants, two parties with a cut, or one of these two on its own machine."
        ),
    ] = Template.FEDERATED,
    data: Annotated[
        str | None,
        typer.Option(
            help="Your table, as my.csv:label: its columns are read, and the plan fits them.", metavar="TABLE"
        ),
    ] = None,
    example: Annotated[
        str | None, typer.Option(help=f"A ready plan: {', '.join(sorted(path.stem for path in READY.glob('*.toml')))}.")
    ] = None,
    table: TableOptions = NONE_GIVEN,
) -> None:
    """Write a plan with a comment on every setting, ready to run."""
    from leaktight.core.errors import InvalidValue
    from leaktight.core.private import reason

    target = file or Path(f"{example}.toml" if example else "audit.toml")
    text = _text(scenario, data, example, table)
    try:
        with target.open("x", encoding="utf-8") as new:
            new.write(text)
    except FileExistsError:
        raise InvalidValue(f"There is a file `{target}` already. Name another one, or move it away.") from None
    except OSError as error:
        raise InvalidValue(f"The file `{target}` cannot be written: {reason(error)}. Name another one.") from error
    typer.echo(f"Wrote {target}. Run it with `leaktight {scenario.command} {target}`.")


def _text(scenario: Template, data: str | None, example: str | None, table: TableOptions) -> str:
    """Return the plan that is asked for; one for a person's own table is tried first."""
    from leaktight.core.errors import InvalidValue, unknown

    if example is not None:
        if data is not None or scenario is not Template.FEDERATED or table.settings:
            raise InvalidValue("`--example` is a whole plan. Leave the other options out, or change the file after.")
        ready = {path.stem: path for path in READY.glob("*.toml")}
        if example not in ready:
            raise unknown("example", example, ready)
        return ready[example].read_text(encoding="utf-8")
    text = scenario.path.read_text(encoding="utf-8")
    if data is None:
        if table.settings:
            raise InvalidValue(f"`--{next(iter(table.settings))}` says how a table is read. Name one with `--data`.")
        return text
    if scenario not in (Template.FEDERATED, Template.SPLIT):
        raise InvalidValue(f"`--data` is for a plan of an audit. Leave it out, or `--scenario {scenario.value}`.")
    from leaktight.cli.table_plan import fill_in
    from leaktight.core.document import parse_toml
    from leaktight.plans.plan_file import parse_plan
    from leaktight.plans.validation import validate_plan

    filled = fill_in(text, data, table, split=scenario is Template.SPLIT)
    validate_plan(parse_plan(parse_toml(filled), "The plan for this table"))
    return filled
