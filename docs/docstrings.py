"""Docstrings for the reference: formulas as plain text, and examples as examples. An extension of griffe."""

from __future__ import annotations

import re
import textwrap
from typing import Any

from griffe import Extension, Object

from leaktight.cli.formula import formula, plain_text

MATH = re.compile(r"^( *)\.\. math::((?:[^\n]|\n(?=\1 +\S))+)", re.MULTILINE)
INLINE = re.compile(r"\\\((.*?)\\\)", re.DOTALL)
EXAMPLE = re.compile(r"^Example:$", re.MULTILINE)


class Docstrings(Extension):
    """Rewrites every docstring before it is parsed."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Rewrite the docstring of a module, class, function or attribute."""
        if obj.docstring is not None:
            obj.docstring.value = to_markdown(obj.docstring.value)


def to_markdown(text: str) -> str:
    r"""Return a docstring without LaTeX.

    Example:
        >>> to_markdown(r"The noise \(\sigma z\).")
        'The noise `σ z`.'
    """
    text = MATH.sub(_block, text)
    text = INLINE.sub(lambda found: f"`{plain_text(found[0])}`", text)
    return EXAMPLE.sub("Examples:", text)


def _block(found: re.Match[str]) -> str:
    parts = [formula(part) for part in re.split(r"(?<=,)\s*\\q?quad", " ".join(found[2].split()))]
    return textwrap.indent("\n".join(["```text", *parts, "```"]), found[1])
