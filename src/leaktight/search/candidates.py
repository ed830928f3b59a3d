"""Candidates: policies drawn at random, those that do the same merged into one, and the choice among them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

import torch

from leaktight.core.random import Stream
from leaktight.transforms.library import LIBRARY, same_as

Indices = tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class CandidatePolicy:
    """One sequence of functions.

    Args:
        indices: as it was drawn.
        acts: its canonical form, which everything is computed by: identities left out, each index the lowest that does
            the same.
    """

    indices: Indices
    acts: Indices

    def __str__(self) -> str:
        return "-".join(map(str, self.indices))


def canonical(indices: Indices) -> Indices:
    """Return what a sequence does: without identities, each function by the lowest index that does the same.

    Example:
        >>> canonical((3, 28, 48)), canonical((39, 28))
        ((3, 24), ())
    """
    return tuple(same_as(index) for index in indices if not LIBRARY[index].identity)


def candidate(text: str) -> CandidatePolicy:
    """Return the candidate that a text like `3-1-7` writes down."""
    indices = tuple(map(int, text.split("-")))
    return CandidatePolicy(indices, canonical(indices))


def draw(library: Sequence[int], functions: int, rng: Stream) -> Indices:
    r"""Draw one of the \(\sum_{i=1}^k m^i\) sequences of at most k of m functions, each with the same chance.

    Functions may be repeated.
    """
    total = sum(len(library) ** length for length in range(1, functions + 1))
    place, length = int(torch.randint(total, (), generator=rng)), 1
    while place >= len(library) ** length:
        place -= len(library) ** length
        length += 1
    found = []
    for _ in range(length):
        place, digit = divmod(place, len(library))
        found.append(library[digit])
    return tuple(found)


def draw_candidates(count: int, library: Sequence[int], functions: int, rng: Stream) -> tuple[CandidatePolicy, ...]:
    """Draw policies, and return one candidate for all that do the same.

    The first of them stands for all. One that does nothing is left out.

    Args:
        count: how many are drawn; fewer may come back.
        library: the indices to draw from.
        functions: how many functions a policy has at most.
        rng: where the draws come from.

    Example:
        >>> from leaktight.core.random import stream
        >>> library = (0, 29, 28)  # 0 and 29 both invert, 28 does nothing
        >>> [str(one) for one in draw_candidates(4, library, 1, stream(0, "candidates"))]
        ['0']
    """
    found: dict[Indices, CandidatePolicy] = {}
    for _ in range(count):
        indices = draw(library, functions, rng)
        acts = canonical(indices)
        if acts:
            found.setdefault(acts, CandidatePolicy(indices, acts))
    return tuple(found.values())


def choose(
    ranked: Iterable[CandidatePolicy], count: int, first: Sequence[CandidatePolicy] = ()
) -> tuple[CandidatePolicy, ...]:
    """Return the first candidates of a ranking that share no function with one taken before.

    If there are too few, fewer are returned.

    Functions that do the same are the same function, whatever their indices.

    Args:
        ranked: best first.
        count: how many are wanted.
        first: what is taken already.

    Example:
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
