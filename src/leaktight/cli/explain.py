"""`leaktight explain`: what a kind does, its settings, and how it differs from its paper."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from leaktight.core.value import Registered

WIDTH = 100
"""How wide a text is at most, however wide the terminal is."""

EXAMPLES = """
\b
Examples:
  leaktight explain gaussian_noise
  leaktight explain dlg2019
"""


def explain(
    kind: Annotated[str, typer.Argument(help="A kind or a preset; `leaktight list` names them.", show_default=False)],
) -> None:
    """Explain a defence, an attack, a preset, a model, a metric or anything else that a plan can name."""
    from leaktight.attacks.presets import ABOUT, PRESETS
    from leaktight.core import registry
    from leaktight.core.errors import unknown

    found = [part for family in registry.families() if (part := registry.classes(family).get(kind))]
    values = [PRESETS[kind]] if kind in PRESETS and not found else []
    if not found and not values:
        known = {name for family in registry.families() for name in registry.classes(family)} | set(PRESETS)
        raise unknown("kind or preset", kind, known)
    parts = [explain_class(part) for part in found] + [
        explain_class(type(value), kind, value, ABOUT[kind]) for value in values
    ]
    typer.echo("\n\n".join("\n".join(part) for part in parts))


def explain_class(
    part: type[Registered], preset: str = "", value: Registered | None = None, about: str = ""
) -> Iterator[str]:
    """Return the lines that explain a class, or a preset of it: what it is, and its own values."""
    from leaktight.cli.docstring import docstring_lines
    from leaktight.cli.setting_table import settings

    width = min(WIDTH, shutil.get_terminal_size().columns)
    kind = str(part.model_fields["kind"].default)
    yield f"{preset}: a preset of {kind} ({part.family})" if preset else f"{kind} ({part.family})"
    yield ""
    if about:
        yield from (*textwrap.wrap(about, width), "")
    yield from docstring_lines(part, width)
    yield ""
    lines = settings(part, value, width - 2)
    if lines:
        yield "Settings of this preset:" if preset else "Settings:"
        yield from (f"  {line}" for line in lines)
    for fact in facts(part, value):
        yield from textwrap.wrap(fact, width)


def facts(part: type[Any], value: Registered | None = None) -> Iterator[str]:
    """Return what a class, or a preset of it, states about itself beside its settings."""
    from leaktight.core.attack import Attack
    from leaktight.core.defence import Defence
    from leaktight.core.metric import Metric
    from leaktight.core.threat import ThreatModel
    from leaktight.core.threat_letter import letter_of
    from leaktight.findings.threats import SOURCE

    if issubclass(part, Defence) and part.strength is not None:
        way = "more" if part.strength.stronger == "up" else "less"
        off = "" if part.strength.off is None else f", {part.strength.off:g} is off"
        yield f"Strength: `{part.strength.field}`; {way} is stronger{off}. A list of values in a plan sweeps it."
    if issubclass(part, Defence):
        yield from (f"Leaves open: {sentence}" for sentence in part.leaves_open)
    if issubclass(part, Attack):
        claims = " and ".join(sorted(part.claims)) or "nothing"
        yield f"Claims: {claims}.{' A simple attack, which a strong one should beat.' if part.simple else ''}"
        complete = not any(field.is_required() for field in part.model_fields.values())
        attack = part() if value is None and complete else value
        # The letters are of attackers who read updates; others sit elsewhere.
        if isinstance(attack, Attack) and not attack.active and "scores" not in part.claims:
            yield f"Threat model, at least: {letter_of(ThreatModel(knows=attack.needs))} in the {SOURCE}."
    if issubclass(part, Metric):
        says = f"A {part.leaks} value means more leakage." if part.leaks else "It says nothing about leakage by itself."
        yield f"Grades: {part.claim}. {says}"
