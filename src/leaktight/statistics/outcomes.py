"""Outcomes: each test row's result under one model, packed into a reading, to compare two models row by row."""

from __future__ import annotations

import base64
import dataclasses
import math
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from leaktight.core.errors import InvalidValue

MOST_ROWS = 50_000
"""Outcomes of more rows are not kept.

A difference is then sharp enough without pairs, and every record of an audit holds a copy.
"""
_LEVELS = 255


@dataclasses.dataclass(frozen=True, eq=False)
class Outcomes:
    """What became of each test row.

    Args:
        kind: `hits`, whether each row was told right; `shares`, by what share of several models it was; or `ranks`,
            what share of the rows of the other class each row stands on the right side of.
        groups: the rows of each independent sample: all of them for hits and shares; for ranks the positives, then the
            negatives.
    """

    kind: Literal["hits", "shares", "ranks"]
    groups: tuple[Tensor, ...]

    def matches(self, other: Outcomes) -> bool:
        """Return whether the other outcomes may be of the same rows: of the same kind, and as many in each group."""
        return self.kind == other.kind and list(map(len, self.groups)) == list(map(len, other.groups))


def pack_hits(hits: Tensor) -> str:
    """Return which rows were told right, one bit for each; nothing for more than `MOST_ROWS` rows.

    Example:
        >>> packed = pack_hits(torch.tensor([True, False, True]))
        >>> packed, unpack(packed).groups[0].tolist()
        ('hits:3:oA==', [1.0, 0.0, 1.0])
    """
    if len(hits) > MOST_ROWS:
        return ""
    return _text("hits", (len(hits),), np.packbits(hits.bool().cpu().numpy()))


def pack_shares(shares: Tensor) -> str:
    """Return by what share of several models each row was told right, one byte for each; nothing beyond `MOST_ROWS`.

    Args:
        shares: for each row the share, in [0, 1].

    Example:
        >>> unpack(pack_shares(torch.tensor([0.2, 1.0]))).groups[0].tolist()
        [0.2, 1.0]
    """
    return "" if len(shares) > MOST_ROWS else _text("shares", (len(shares),), _bytes(shares))


def pack_ranks(positives: Tensor, negatives: Tensor) -> str:
    """Return where each row stands among those of the other class, one byte for each.

    It returns nothing for more than `MOST_ROWS` rows.

    Rounding to bytes adds at most 3e-6 to the variance of a difference of two ranks, and never makes it smaller in
    expectation.

    Args:
        positives: for each positive row the share of negatives below it, in [0, 1].
        negatives: for each negative row the share of positives above it.

    Example:
        >>> positives, negatives = unpack(pack_ranks(torch.tensor([0.5, 1.0]), torch.tensor([0.75]))).groups
        >>> [round(rank, 2) for rank in (*positives.tolist(), *negatives.tolist())]
        [0.5, 1.0, 0.75]
    """
    sizes = (len(positives), len(negatives))
    if sum(sizes) > MOST_ROWS:
        return ""
    return _text("ranks", sizes, _bytes(torch.cat([positives, negatives])))


def unpack(text: str) -> Outcomes | None:
    """Undo `pack_hits`, `pack_shares` and `pack_ranks`; None for an empty text.

    Raises:
        InvalidValue: the text is not what one of them returns.
    """
    if not text:
        return None
    kind, *sizes, content = text.split(":")
    try:
        counts = [int(size) for size in sizes]
        entries = np.frombuffer(base64.b64decode(content, validate=True), dtype=np.uint8)
        if kind == "hits" and len(counts) == 1 and len(entries) == math.ceil(counts[0] / 8):
            return Outcomes("hits", (torch.from_numpy(np.unpackbits(entries, count=counts[0])).double(),))
        if kind == "shares" and counts == [len(entries)]:
            return Outcomes("shares", (torch.from_numpy(entries.copy()).double() / _LEVELS,))
        if kind == "ranks" and len(counts) == 2 and len(entries) == sum(counts):
            return Outcomes("ranks", tuple(torch.split(torch.from_numpy(entries.copy()).double() / _LEVELS, counts)))
    except ValueError:
        pass
    raise InvalidValue(f"The outcomes of a reading must be packed hits, shares or ranks. Got `{text[:20]}` instead.")


def _bytes(shares: Tensor) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    content: np.ndarray[tuple[int, ...], np.dtype[np.uint8]]
    content = (shares.double().cpu() * _LEVELS).round().to(torch.uint8).numpy()
    return content


def _text(kind: str, sizes: tuple[int, ...], content: np.ndarray[tuple[int, ...], np.dtype[np.uint8]]) -> str:
    return ":".join([kind, *map(str, sizes), base64.b64encode(content.tobytes()).decode()])
