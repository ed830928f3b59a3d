"""The choice: the best policies that share no function."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from leaktight.search.candidates import Candidate


def choose(ranked: Iterable[Candidate], count: int, first: Sequence[Candidate] = ()) -> tuple[Candidate, ...]:
    """Return the first candidates of a ranking that share no function with one taken before.

    If there are too few, fewer are returned.

    Functions that do the same are the same function, whatever their indices.

    Args:
        ranked: best first.
        count: how many are wanted.
        first: what is taken already.

    Example:
        >>> from leaktight.search.candidates import candidate
        >>> ranked = map(candidate, ("3-1-7", "3-15", "43-7", "24-18"))
        >>> [str(one) for one in choose(ranked, 2)]  # 43 does what 24 does, but 7 is taken
        ['3-1-7', '24-18']
    """
    found, used = list(first), {index for one in first for index in one.acts}
    for one in ranked:
        if len(found) >= count:
            break
        if used.isdisjoint(one.acts):
            found.append(one)
            used.update(one.acts)
    return tuple(found)
