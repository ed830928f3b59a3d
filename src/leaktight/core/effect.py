"""Effects: what a defence does to a whole message, and which effects undo each other in a chain."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Literal

Effect = Literal["zeros", "noise", "bound"]
"""`zeros`: it sets entries to zero. `noise`: it adds noise to every entry. `bound`: it shortens what exceeds a norm."""
UNDONE: dict[tuple[Effect, Effect], str] = {
    ("zeros", "noise"): (
        "{later} after {earlier} puts noise on the entries that {earlier} left out: the message is no longer sparse, "
        "and pays for noise where nothing is sent. Use `top_k` with `noise`, which is for the entries that go out."
    ),
    ("noise", "zeros"): (
        "{later} after {earlier} chooses entries by their noise wherever that is larger than the update, and drops the "
        "update there. Use `top_k` with `noise`, which chooses first."
    ),
    ("noise", "bound"): (
        "{later} after {earlier} shortens the noise together with the update where both exceed its clip: less noise "
        "goes out than {earlier} states. Put {later} first."
    ),
}
"""What a later link undoes of an earlier one, by their effects."""


def find_conflicts(parts: Sequence[tuple[str, frozenset[Effect]]]) -> list[str]:
    """Return a sentence for each defence of a chain that undoes an earlier one.

    Args:
        parts: the kind and the effects of each, in order.

    Example:
        >>> find_conflicts([("local_dp", frozenset({"bound", "noise"})), ("none", frozenset())])
        []
        >>> [sentence] = find_conflicts([("gaussian_noise", frozenset({"noise"})), ("local_dp", frozenset({"bound"}))])
        >>> sentence.rpartition(". ")[2]
        'Put local_dp first.'
    """
    return [
        sentence.format(earlier=first, later=second)
        for (first, earlier), (second, later) in itertools.combinations(parts, 2)
        for (before, after), sentence in UNDONE.items()
        if before in earlier and after in later
    ]
