"""`leaktight init`: write a commented plan to start from."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


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
  leaktight init --scenario split labels.toml && leaktight audit labels.toml
  leaktight init --scenario label-party label.toml && leaktight init --scenario feature-party feature.toml
"""


def init(
    file: Annotated[Path, typer.Argument(help="The file to write; one that is there is left alone.")] = Path(
        "audit.toml"
    ),
    scenario: Annotated[
        Template,
        typer.Option(
            help="Who learns from whom: participants, two parties with a cut, or one of these two on its own machine."
        ),
    ] = Template.FEDERATED,
) -> None:
    """Write a plan with a comment on every setting, ready to run."""
    from leaktight.core.errors import InvalidValue
    from leaktight.core.private import reason

    try:
        with file.open("x", encoding="utf-8") as new:
            new.write(scenario.path.read_text(encoding="utf-8"))
    except FileExistsError:
        raise InvalidValue(f"There is a file `{file}` already. Name another one, or move it away.") from None
    except OSError as error:
        raise InvalidValue(f"The file `{file}` cannot be written: {reason(error)}. Name another one.") from error
    typer.echo(f"Wrote {file}. Run it with `leaktight {scenario.command} {file}`.")
