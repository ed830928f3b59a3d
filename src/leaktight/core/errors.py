"""What went wrong, in one sentence that a person can act on.

Everything Leaktight raises on purpose is a `LeaktightError`; the command line shows its text and no traceback.
"""

from __future__ import annotations

import difflib
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pydantic import BaseModel, ValidationError


class LeaktightError(Exception):
    """The root of every error that Leaktight raises on purpose."""


class InvalidValue(LeaktightError):
    """A setting, a file or a tensor is not what it must be."""


class Refusal(LeaktightError):
    """A defence, an attack or a metric does not apply here: the cell is recorded as refused, with this reason."""


SHOWN = 200
"""How many characters of a foreign value an error shows."""
_COMPARED, _LISTED = 2000, 1500
_LIKELY, _BEGINNING = 0.75, 3
"""How alike two words must be for one to be a slip of the other, and how long a beginning must be to stand for it."""


def excerpt(value: object) -> str:
    """Return a value as an error shows it: as Python writes it, cut where a person stops reading.

    Example:
        >>> excerpt("abc"), len(excerpt("abc" * 1000))
        ("'abc'", 204)
    """
    try:
        text = repr(value)
    # A whole number can be too long to be written, and what holds itself too deep.
    except (ValueError, RecursionError):
        text = f"a {type(value).__name__} that is too long to be shown"
    return text if len(text) <= SHOWN else f"{text[:SHOWN]} ..."


def closest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that another one is likely a slip of; None if no slip of the hand explains it.

    It is nearly the same word, or the beginning of one alone. Another number is another thing, not a slip.

    Example:
        >>> closest("gausian_noise", ["gaussian_noise", "top_k"]), closest("gaussian", ["gaussian_noise", "top_k"])
        ('gaussian_noise', 'gaussian_noise')
        >>> closest("client-9", ["client-0", "client-1"]), closest("resnet2", ["resnet20"])
        (None, 'resnet20')
    """
    typed = word[:SHOWN].lower()
    names = {name.lower(): name for name in sorted(known, reverse=True)[-_COMPARED:] if len(name) <= SHOWN}
    near = difflib.get_close_matches(typed, names, n=3, cutoff=_LIKELY)
    # Of three letters, two that changed places are most of the word.
    swapped = (name for name in names if len(typed) >= _BEGINNING and sorted(name) == sorted(typed))
    alike = next((names[name] for name in (*near, *swapped) if _same_digits(typed, name)), None)
    longer = [name for name in names if name.startswith(typed)] if len(typed) >= _BEGINNING else []
    return alike or (names[longer[0]] if len(longer) == 1 else None)


def _same_digits(one: str, other: str) -> bool:
    """Return whether two words have the same digits in some order, but for digits that only one of them has."""
    first, second = (Counter(filter(str.isdigit, text)) for text in (one, other))
    return not (first - second and second - first)


def list_known(known: Iterable[str]) -> str:
    """Return a sentence that lists what there is.

    Example:
        >>> list_known(["b", "a"]), list_known([])
        ('Known are: `a`, `b`.', 'None is known here.')
    """
    every = sorted(known)
    quoted = [f"`{name}`" for name in every[:_COMPARED] if len(name) <= SHOWN]
    fitting = [name for name, end in zip(quoted, itertools.accumulate(map(len, quoted)), strict=True) if end <= _LISTED]
    more = f" and {len(every) - len(fitting)} more" if len(every) > len(fitting) else ""
    return f"Known are: {', '.join(fitting)}{more}." if every else "None is known here."


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return a hint about a word that a person wrote: the one it is likely a slip of, or else all that are known.

    Example:
        >>> did_you_mean("gausian_noise", ["gaussian_noise", "top_k"]), did_you_mean("income", ["age", "job"])
        ('Did you mean `gaussian_noise`?', 'Known are: `age`, `job`.')
    """
    every = list(known)
    meant = closest(word, every)
    return list_known(every) if meant is None else f"Did you mean `{meant}`?"


def unknown(what: str, word: str, known: Iterable[str]) -> InvalidValue:
    """Return the error for a name that is not among the known ones."""
    return InvalidValue(f"There is no {what} named `{word[:SHOWN]}`. {did_you_mean(word, known)}")


def from_validation(value: type[BaseModel], error: ValidationError) -> InvalidValue:
    """Return one error that states every fault pydantic found in a value, a sentence each."""
    kind = value.model_fields["kind"].default if "kind" in value.model_fields else ""
    owner = kind if kind and isinstance(kind, str) else value.__name__
    return InvalidValue("\n".join(_sentence(owner, value, dict(fault)) for fault in error.errors()))


_Expectation = Callable[[Mapping[str, Any]], str]
_EXPECTED: dict[str, _Expectation] = {
    "greater_than": lambda limits: f"above {limits['gt']:g}",
    "greater_than_equal": lambda limits: f"at least {limits['ge']:g}",
    "less_than": lambda limits: f"below {limits['lt']:g}",
    "less_than_equal": lambda limits: f"at most {limits['le']:g}",
    "literal_error": lambda limits: f"one of {limits['expected']}",
    "enum": lambda limits: f"one of {limits['expected']}",
    "finite_number": lambda limits: "a finite number",
    "too_short": lambda limits: f"a list of at least {limits['min_length']}",
    "string_too_short": lambda limits: f"a text whose length is at least {limits['min_length']}",
    "string_too_long": lambda limits: f"a text whose length is at most {limits['max_length']}",
}


def _sentence(owner: str, value: type[BaseModel], fault: dict[str, Any]) -> str:
    """State one fault: whose field, what it must be, what it was."""
    path = ".".join(str(part)[:SHOWN] for part in fault["loc"])
    if fault["type"] == "extra_forbidden":
        return f"{owner} has no setting `{path}`. {did_you_mean(path, value.model_fields)}"
    if fault["type"] == "missing":
        return f"The `{path}` of {owner} is missing. Add it."
    if fault["type"] == "value_error":
        text = str(fault["ctx"]["error"])
        return f"The `{path}` of {owner} {text}" if path else f"{owner} {text}"
    expected = _EXPECTED.get(fault["type"])
    must = expected(fault.get("ctx", {})) if expected else str(fault["msg"]).removeprefix("Input should be ")
    return f"The `{path}` of {owner} must be {must}. Got {excerpt(fault['input'])} instead."
