"""`leaktight init`: write a commented plan to start from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

TEMPLATE = Path(__file__).parent / "audit.toml"

EXAMPLES = """
\b
Example:
  leaktight init audit.toml && leaktight audit audit.toml
"""


def init(
    file: Annotated[Path, typer.Argument(help="The file to write; one that is there is left alone.")] = Path("audit.toml"),
) -> None:
    """Write a plan with a comment on every setting, ready to run."""
    from leaktight.audit.private import reason
    from leaktight.core.errors import InvalidValue

    try:
        with file.open("x", encoding="utf-8") as new:
            new.write(TEMPLATE.read_text(encoding="utf-8"))
    except FileExistsError:
        raise InvalidValue(f"There is a file `{file}` already. Name another one, or move it away.") from None
    except OSError as error:
        raise InvalidValue(f"The file `{file}` cannot be written: {reason(error)}. Name another one.") from error
    typer.echo(f"Wrote {file}. Run it with `leaktight audit {file}`.")
