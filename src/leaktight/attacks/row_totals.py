"""Row totals: the scores of a row over several messages, added up after they are brought to one sign and scale."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import torch
from torch import Tensor

from leaktight.core.message import Message
from leaktight.core.threat import View

_MEMORY = 0.9
_OFTEN = 1.5
MOST_TOTALS = 2**26
"""How many totals are kept at most: half a gigabyte. Beyond, or if rows come less than 1.5 times, there are none."""


@dataclasses.dataclass
class RowTotals:
    r"""The scores of one layer, message by message.

    The scores of a message are brought to mean 0 and variance 1, as gradients shrink while a model learns. Where the
    sign of a message's scores is by chance (that of an eigenvector, or of a single known gradient under noise), it is
    fixed by continuity: with \(g_i\) the rows and \(z_i\) the scores, \(d = \sum_i z_i g_i\) is the direction along
    which they rank the rows. The message is turned round if

    .. math:: \cos(d, \bar d) + \mathrm{corr}(z, t) < 0

    with \(\bar d\) the running mean of the directions so far, which change slowly from step to step, and \(t\) what was
    added up before for the same rows. In the end all are turned round if most of them were.

    Args:
        layers: how many layers are scored.
        passes: which passes were seen, in order.
        count: how many rows there are.
        turns: whether the sign of a message's scores is by chance.
    """

    layers: int
    passes: Sequence[int]
    count: int
    turns: bool

    def __post_init__(self) -> None:
        self.values = torch.full((self.layers, len(self.passes), self.count), torch.nan, dtype=torch.float64)
        self._totals = torch.zeros(self.layers, self.count, dtype=torch.float64)
        self._ways: list[Tensor | None] = [None] * self.layers
        self._kept = torch.zeros(self.layers)

    def add(self, layer: int, number: int, index: Tensor, scores: Tensor, rows: Tensor) -> None:
        """Add the scores of one message at one layer.

        Args:
            layer: which layer.
            number: of the pass.
            index: the rows' numbers.
            scores: one for each, NaN for one that is not scored.
            rows: their gradients at the layer, flat.
        """
        index, scores, rows = index.cpu(), scores.cpu(), rows.detach().cpu()
        scored = ~torch.isnan(scores)
        if not scored.any():
            return
        standard = standardise(scores[scored])
        if self.turns:
            standard = standard * self._sign(layer, index[scored], standard, rows[scored])
        place = self.passes.index(number)
        self.values[layer, place, index[scored]] = standard
        self._totals[layer, index[scored]] += standard

    def finish(self, known: Tensor) -> Tensor:
        """Return what each pass says of each row, without the rows whose labels were told."""
        totals = torch.where((self._kept < 0)[:, None, None], -self.values, self.values)
        totals[:, :, known.cpu()] = torch.nan
        return totals

    def _sign(self, layer: int, index: Tensor, standard: Tensor, rows: Tensor) -> float:
        way = torch.nn.functional.normalize(standard @ rows.double(), dim=0)
        last = self._ways[layer]
        sign = 1.0
        if last is not None:
            vote = torch.nn.functional.cosine_similarity(way, last, dim=0) + standard @ standardise(
                self._totals[layer, index]
            ) / len(index)
            sign = -1.0 if vote < 0 else 1.0
        self._ways[layer] = sign * way if last is None else _MEMORY * last + sign * way
        self._kept[layer] += sign
        return sign


def standardise(scores: Tensor) -> Tensor:
    """Return scores with mean 0 and variance 1; zeros if they are all the same.

    Example:
        >>> standardise(torch.tensor([1.0, 3.0])).tolist(), standardise(torch.tensor([2.0, 2.0])).tolist()
        ([-1.0, 1.0], [0.0, 0.0])
    """
    centred = scores.double() - scores.double().mean()
    spread = centred.square().mean().sqrt()
    return centred / spread if spread > 0 else torch.zeros_like(centred)


def row_numbers(view: View, messages: Sequence[Message]) -> tuple[tuple[Tensor, ...], tuple[int, ...]] | None:
    """Return a number for each row behind each message, the same wherever the row is, and the pass of each message.

    The feature party's own numbers are counted through anew, so that rows which were not seen take no place. None if
    the seat does not know them.

    Args:
        view: what the attacker has.
        messages: the messages that are attacked.
    """
    seen = view.memory.get("seen", {})
    own = [seen.get(str(message.round), {}) for message in messages]
    if not own or not all("rows" in step for step in own):
        return None
    rows = [step["rows"].cpu() for step in own]
    _, numbers = torch.unique(torch.cat(rows), return_inverse=True)
    return tuple(torch.split(numbers, [len(each) for each in rows])), tuple(int(step["pass"]) for step in own)


def worth_adding(rows: Sequence[Tensor], passes: Sequence[int], layers: int) -> bool:
    """Return whether rows come again often enough to add up their scores, and all totals fit into memory.

    Args:
        rows: the numbers of the rows of each message.
        passes: the pass of each message.
        layers: how many layers are scored.

    Example:
        >>> once, again = torch.arange(4), torch.arange(4)
        >>> worth_adding([once], [0], 1), worth_adding([once, again], [0, 1], 1)
        (False, True)
    """
    count = 1 + max(int(own.max()) for own in rows)
    often = sum(len(own) for own in rows) / count
    return often >= _OFTEN and layers * len(set(passes)) * count <= MOST_TOTALS
