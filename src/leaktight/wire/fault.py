"""Faults between two parties: whose fault it is decides what becomes of the connection."""

from __future__ import annotations

from leaktight.core.errors import LeaktightError

LONGEST = 500
"""How much of a sentence from the other side is shown."""


class Lost(LeaktightError):
    """The connection ended, or the other side was silent for too long: connect again."""


class PeerFault(LeaktightError):
    """What the other side sent is not what it must be: it is told so, and nothing of it was applied."""


class Rejected(LeaktightError):
    """The other side does not continue, and says why."""


def printable(text: str) -> str:
    r"""Return a text from elsewhere as it may be shown on a terminal: one line, bounded, without control characters.

    Example:
        >>> printable("No.\x1b[2J\nReally.")
        'No. [2J Really.'
    """
    return " ".join("".join(sign if sign.isprintable() else " " for sign in text[:LONGEST]).split())
