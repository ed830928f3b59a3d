"""Documents: TOML and JSON that others wrote, parsed only if they are not nested too deeply."""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any

DEEPEST = 64
"""How many tables, lists or dotted names may be inside one another."""
MOST_SETTINGS = 10_000
"""How many settings a TOML document may have: each that is wrong gets a sentence."""

# Possessive, so that a text without an end is looked at once.
_JSON = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)
_TOML = re.compile(
    r'"""(?:[^"\\]++|\\.|"(?!""))*+"{3,5}'
    r"|'''(?:[^']++|'(?!''))*+'{3,5}"
    r'|"(?:[^"\\\n]++|\\.)*+"?'
    r"|'[^'\n]*+'?"
    r"|\#[^\n]*+"
    r"|[\[{\]}.,=\n]",
    re.DOTALL,
)


def parse_toml(text: str) -> dict[str, Any]:
    """Return the document in a text.

    Raises:
        ValueError: it is no TOML, is nested too deeply, has too many settings, or a number that is too long.

    Example:
        >>> parse_toml("grid.victims = 3")
        {'grid': {'victims': 3}}
    """
    _check_toml(text)
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError:
        raise _too_deep() from None
    except ValueError:
        raise _too_long() from None


def parse_json(content: bytes) -> Any:
    """Return the document in bytes of UTF-8.

    Raises:
        ValueError: it is no JSON, is nested too deeply, or holds a number that is too long.

    Example:
        >>> parse_json(b'{"a": [1, 2]}')
        {'a': [1, 2]}
        >>> parse_json(b"[" * 100)
        Traceback (most recent call last):
        ValueError: it is nested more than 64 deep
    """
    depth = 0
    for token in _JSON.finditer(content):
        sign = content[token.start()]
        depth += (sign in b"[{") - (sign in b"]}")
        if depth > DEEPEST:
            raise _too_deep()
    try:
        return json.loads(content.decode("utf-8-sig"))
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise
    except RecursionError:
        raise _too_deep() from None
    except ValueError:
        raise _too_long() from None


def _check_toml(text: str) -> None:
    """Raise if brackets are nested too deeply, a dotted name has too many parts, or there are too many settings.

    A parser takes time quadratic in the parts of a dotted name.
    """
    depth = dots = settings = 0
    for token in _TOML.finditer(text):
        sign = text[token.start()]
        if sign in "[{":
            depth += 1
        elif sign in "]}":
            depth -= 1
        elif sign == ".":
            dots += 1
        if sign in "[{,=\n":
            dots = 0
            settings += sign == "="
        if max(depth, dots) > DEEPEST:
            raise _too_deep()
        if settings > MOST_SETTINGS:
            raise ValueError(f"it has more than {MOST_SETTINGS} settings")


def _too_deep() -> ValueError:
    return ValueError(f"it is nested more than {DEEPEST} deep")


def _too_long() -> ValueError:
    return ValueError("a number in it has too many digits")
