"""Docstrings as a terminal shows them: formulas as plain text, paragraphs filled to the width, examples as they are."""

from __future__ import annotations

import inspect
import itertools
import re
import textwrap
from collections.abc import Sequence

from leaktight.cli.formula import formula, plain_text

_MATH = ".. math::"
_HEADING = re.compile(r"[A-Z]\w+:")
_UNBROKEN = "\N{NO-BREAK SPACE}"
_ITEM = re.compile(r"(- |\d+\. )")


def docstring_lines(part: type, width: int) -> list[str]:
    """Return what a class says about itself in lines of at most this width, unless an example or a word is wider.

    Example:
        >>> from leaktight.core.defence import Undefended
        >>> docstring_lines(Undefended, 30)
        ['No defence: every message goes', 'out as it is.']
    """
    shown: list[str] = []
    heading = ""
    text = (inspect.getdoc(part) or "").splitlines()
    for is_text, lines in itertools.groupby(text, key=lambda line: bool(line.strip())):
        block = list(lines)
        if is_text and not block[0].startswith(" "):
            heading = block[0] if _HEADING.fullmatch(block[0]) else ""
        if is_text and block[0] == heading:
            shown.append(block.pop(0))
        if heading.startswith("Example") or not is_text:
            shown += block
        else:
            shown += [line for entry in _entries(block, heading) for line in _fill(entry, heading, width)]
    return shown


def _entries(block: Sequence[str], heading: str) -> list[list[str]]:
    """Return the lines of each paragraph, list item, argument, reference and formula."""
    entries: list[list[str]] = []
    for line in block:
        if not entries or _begins(line, entries[-1], heading):
            entries.append([])
        entries[-1].append(line)
    return entries


def _begins(line: str, entry: Sequence[str], heading: str) -> bool:
    """Return whether a line begins another entry: it is as far left, and not of the same paragraph."""
    deeper = _indent(line) - _indent(entry[0])
    if line.lstrip().startswith(_MATH) or _ITEM.match(line.lstrip()) or deeper < 0:
        return True
    is_complete = entry[-1].endswith(".") if heading == "References:" else bool(heading) or _MATH in entry[0]
    return deeper == 0 and is_complete


def _fill(entry: Sequence[str], heading: str, width: int) -> list[str]:
    """Return an entry in lines of this width; what is indented without a heading is shown as it is."""
    indent, hang, text = _indent(entry[0]), 4 if heading else 0, " ".join(line.strip() for line in entry)
    item = _ITEM.match(text)
    if text.startswith(_MATH):
        # Formulas side by side stand below one another, for lack of room.
        parts = [formula(part) for part in re.split(r"(?<=,)\s*\\q?quad", text.removeprefix(_MATH))]
        indent, hang = indent + 4, 4
    elif heading or item or indent < 4:
        parts, hang = [plain_text(text, space=_UNBROKEN)], len(item[0]) if item else hang
    else:
        return list(entry)
    margin = " " * indent
    wrapper = textwrap.TextWrapper(width, margin, margin + " " * hang, break_long_words=False, break_on_hyphens=False)
    return [line.replace(_UNBROKEN, " ") for part in parts for line in wrapper.wrap(part)]


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
