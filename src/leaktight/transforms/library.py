"""The library: fifty transformation functions, each an operation at a level, by their published indices."""

from __future__ import annotations

import dataclasses
import functools

from leaktight.core.errors import InvalidValue
from leaktight.transforms.operation import OPERATIONS


@dataclasses.dataclass(frozen=True)
class Function:
    """One of the fifty functions.

    Args:
        index: its number in the library, 0 to 49.
        operation: the name of what it does.
        probability: the share of images that the library lists it for. The published search never reads it.
        level: how strongly, 0 to 9.

    Example:
        >>> LIBRARY[11].operation, LIBRARY[11].value
        ('posterize', 6.0)
        >>> [function.index for function in LIBRARY if function.identity]
        [28, 39]
    """

    index: int
    operation: str
    probability: float
    level: int

    @property
    def value(self) -> float | None:
        """The operation's value at this level; None if it has no parameter."""
        return OPERATIONS[self.operation].value(self.level)

    @property
    def words(self) -> str:
        """What it does, for people who do not know its index.

        Example:
            >>> LIBRARY[21].words, LIBRARY[8].words, LIBRARY[28].words
            ('move sideways (level 5)', 'autocontrast', 'no change')
        """
        if self.identity:
            return "no change"
        said = _WORDS.get(self.operation, self.operation)
        return said if self.value is None else f"{said} (level {self.level})"

    @property
    def signed(self) -> bool:
        """Whether each call draws a sign that matters."""
        return OPERATIONS[self.operation].signed and not self.identity

    @property
    def identity(self) -> bool:
        """Whether it leaves every image as it is, at whatever sign."""
        operation = OPERATIONS[self.operation]
        neutral = {"posterize": 8.0, "solarize": 256.0}.get(self.operation, 0.0)
        return operation.magnitudes is not None and self.value == neutral


_WORDS = {
    "translateX": "move sideways",
    "translateY": "move up or down",
    "shearX": "shear sideways",
    "shearY": "shear up or down",
    "color": "colour",
}
# Operation, listed probability, level: the fifty in the order of their indices.
_LISTED = (
    ("invert", 0.1, 7), ("contrast", 0.2, 6), ("rotate", 0.7, 2), ("translateX", 0.3, 9), ("sharpness", 0.8, 1),
    ("sharpness", 0.9, 3), ("shearY", 0.5, 2), ("translateY", 0.7, 2), ("autocontrast", 0.5, 5), ("equalize", 0.9, 2),
    ("shearY", 0.2, 5), ("posterize", 0.3, 5), ("color", 0.4, 3), ("brightness", 0.6, 5), ("sharpness", 0.3, 9),
    ("brightness", 0.7, 9), ("equalize", 0.6, 5), ("equalize", 0.5, 1), ("contrast", 0.6, 7), ("sharpness", 0.6, 5),
    ("color", 0.7, 5), ("translateX", 0.5, 5), ("equalize", 0.3, 7), ("autocontrast", 0.4, 8), ("translateY", 0.4, 3),
    ("sharpness", 0.2, 6), ("brightness", 0.9, 6), ("color", 0.2, 8), ("solarize", 0.5, 0), ("invert", 0.0, 0),
    ("equalize", 0.2, 0), ("autocontrast", 0.6, 0), ("equalize", 0.2, 8), ("equalize", 0.6, 4), ("color", 0.9, 5),
    ("equalize", 0.6, 5), ("autocontrast", 0.8, 4), ("solarize", 0.2, 4), ("brightness", 0.1, 3), ("color", 0.7, 0),
    ("solarize", 0.4, 1), ("autocontrast", 0.9, 0), ("translateY", 0.9, 3), ("translateY", 0.7, 3),
    ("autocontrast", 0.9, 1), ("solarize", 0.8, 1), ("equalize", 0.8, 5), ("invert", 0.1, 0), ("translateY", 0.7, 3),
    ("autocontrast", 0.9, 1),
)  # fmt: skip

LIBRARY: tuple[Function, ...] = tuple(Function(index, *listed) for index, listed in enumerate(_LISTED))
"""The fifty functions; a policy names them by their place here."""


def function_at(index: int) -> Function:
    """Return the function of an index, 0 to 49."""
    if not 0 <= index < len(LIBRARY):
        raise InvalidValue(
            f"The index of a transformation function must be in 0..{len(LIBRARY) - 1}. Got {index} instead."
        )
    return LIBRARY[index]


def is_index(text: str) -> bool:
    """Whether a text is a whole number, which may be an index; Python itself refuses to read thousands of digits.

    Example:
        >>> is_index("49"), is_index("-1"), is_index("9" * 5000)
        (True, False, False)
    """
    return text.isascii() and text.isdigit() and len(text) < 10


@functools.cache
def same_as(index: int) -> int:
    """Return the lowest index of a function that always does the same; both identities are the same function.

    Example:
        >>> same_as(48), same_as(29), same_as(39)
        (24, 0, 28)
        >>> len({same_as(index) for index in range(50)})
        28
    """
    wanted = _effect(function_at(index))
    return next(function.index for function in LIBRARY if _effect(function) == wanted)


def _effect(function: Function) -> tuple[str, float | None]:
    return ("", None) if function.identity else (function.operation, function.value)
