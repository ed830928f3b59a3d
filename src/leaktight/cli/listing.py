"""`leaktight list`: what there is, one line each."""

from __future__ import annotations

import shutil
import sys
import textwrap
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from leaktight.core.attack import Attack

FAMILIES = {
    "defences": "defence",
    "priors": "prior",
    "attacks": "attack",
    "presets": "",
    "models": "model",
    "data": "data",
    "partitions": "partition",
    "protocols": "protocol",
    "metrics": "metric",
    "probes": "probe",
    "scenarios": "scenario",
    "leaks": "leak",
}
"""The families as a person names them, and as the registry does; presets are attacks by name."""

EXAMPLES = """
\b
Examples:
  leaktight list
  leaktight list defences
"""


def list_kinds(
    family: Annotated[str | None, typer.Argument(help=f"One of {', '.join(FAMILIES)}.", show_default="all")] = None,
) -> None:
    """List what there is: the kinds that a plan can name, and the kinds of leak that are judged."""
    from leaktight.core import registry
    from leaktight.core.errors import unknown

    families = FAMILIES | {f"{name}s": name for name in registry.families() if name not in FAMILIES.values()}
    chosen = [name for name, root in families.items() if family in (None, name, root)]
    if family == "" or not chosen:
        raise unknown("family", str(family), families)
    for position, name in enumerate(chosen):
        lines = preset_lines() if name == "presets" else kind_lines(families[name])
        if len(chosen) > 1:
            typer.echo(f"{chr(10) if position else ''}{name}:")
        width = max(map(len, lines))
        for kind, text in lines.items():
            typer.echo(_line(f"  {kind:{width}}  ", text))


def _line(lead: str, text: str) -> str:
    """Return one line; on a terminal it is broken below its text, so that kinds stand out."""
    if not sys.stdout.isatty():
        return lead + text
    margin, columns = " " * len(lead), shutil.get_terminal_size().columns
    wrapper = textwrap.TextWrapper(columns, lead, margin, break_long_words=False, break_on_hyphens=False)
    return wrapper.fill(text)


def kind_lines(family: str) -> dict[str, str]:
    """Return what every kind of a family says about itself."""
    from leaktight.cli.formula import plain_text
    from leaktight.core import registry
    from leaktight.findings.display import gist

    return {kind: plain_text(gist(part)) for kind, part in registry.classes(family).items()}


def preset_lines() -> dict[str, str]:
    """Return every preset with what sets it apart."""
    from leaktight.attacks.presets import PRESETS

    return {name: ", ".join([attack.kind, *apart(attack)]) for name, attack in PRESETS.items()}


def apart(attack: Attack) -> list[str]:
    """Return the settings of an attack that are not at their defaults."""
    fields = type(attack).model_fields
    return [
        f"{name} {value}"
        for name, value in dict(attack).items()
        if name not in ("kind", "preset") and value != fields[name].default
    ]
