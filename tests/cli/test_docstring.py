"""Docstrings on a terminal: paragraphs fill the width, and what has a form keeps it."""

# ruff: noqa: RUF001
from __future__ import annotations

from leaktight.cli.docstring import docstring_lines


class Shown:
    r"""The first line is long enough to be broken at forty columns.

    A paragraph with \(\sigma
    \le 1\) in it, over two lines, and a formula:

    .. math:: \tilde g = g + \sigma z,
        \qquad z \sim N(0, I)

    - `one`: an item that goes on
      in another line;
    - two.

    1. A numbered item over more than
       one line.

    A table:

        a  1
        b  2

    Args:
        std: \(\sigma\), a setting whose text does not fit on one line.
        mean: short.

    Example:
        >>> len("a very long line that nobody breaks because it is code")  # \(not a formula\)
        54

        >>> 1
        1

    Differs from the paper: none
    known.

    References:
        One et al., A Title, 2020,
        section 2.
        Two, 2021.
    """


LINES = r"""
The first line is long enough to be
broken at forty columns.

A paragraph with σ ≤ 1 in it, over two
lines, and a formula:

    g̃ = g + σ z,
    z ~ N(0, I)

- `one`: an item that goes on in another
  line;
- two.

1. A numbered item over more than one
   line.

A table:

    a  1
    b  2

Args:
    std: σ, a setting whose text does
        not fit on one line.
    mean: short.

Example:
    >>> len("a very long line that nobody breaks because it is code")  # \(not a formula\)
    54

    >>> 1
    1

Differs from the paper: none known.

References:
    One et al., A Title, 2020, section
        2.
    Two, 2021.
"""


def test_a_docstring_fills_the_width_and_keeps_its_form() -> None:
    assert docstring_lines(Shown, 40) == LINES.strip().splitlines()


def test_a_class_may_say_nothing() -> None:
    class Mute:
        pass

    assert docstring_lines(Mute, 40) == []
