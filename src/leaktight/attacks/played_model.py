"""Played models rank guesses by playing the real defence on them, where the defence states no channel."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from leaktight.attacks.played_channel import MomentChanges, TensorChange
from leaktight.attacks.shadow import group_by_moment, shadow_messages
from leaktight.core.defence import Defence
from leaktight.core.message import Tensors
from leaktight.core.random import Stream, stream
from leaktight.core.run import GroundTruth
from leaktight.core.task import Batch
from leaktight.core.threat import View

PLAYS = 16
"""How often the defence is played on each guess."""
ROUNDING = 1e-3
"""Differences below this share of a tensor's size do not count."""
MOST_CLASSES = 16
"""Up to how many classes each is tried, where nobody guesses the label of an example."""


class PlayedModel:
    r"""Ranks guesses by what a known defence makes of them, if it states no channel.

    A guess x is played k times with the same draws for every guess. With m the message, \(s_k\) the plays, both cleaned
    of what earlier plays showed, and \(v_t\) the variance of what is drawn in tensor t,

    .. math:: \min_k \sum_t \lVert m_t - s_{k,t}(x) \rVert^2 / (2 v_t)

    is its score: the truth has the lowest wherever nothing is drawn. There is no prior in it.

    Args:
        view: what the attacker sees, with a known defence.
        changes: what plays showed about its messages.
        rng: where the draws of plays come from.
    """

    def __init__(self, view: View, defence: Defence, changes: Sequence[MomentChanges], rng: Stream) -> None:
        self.view, self.defence = view, defence
        self.exchanges = view.exchanges()
        self._seed = rng.initial_seed()
        self._moments = {place: moment for moment, places in group_by_moment(view, self.exchanges) for place in places}
        self._changes = {place: played for played, places in changes for place in places}

    def score(self, inputs: Sequence[Tensor | None], labels: Sequence[Tensor | None]) -> Tensor:
        """Return how far each message is from what its guess would have sent; infinite if no guess can be played.

        Args:
            inputs: for each message the guessed examples, or None.
            labels: their labels, or None.
        """
        pairs = zip(inputs, labels, strict=True)
        return torch.tensor([self._lowest(place, guess, own) for place, (guess, own) in enumerate(pairs)])

    def explains(self, inputs: Sequence[Tensor | None], labels: Sequence[Tensor | None]) -> list[bool]:
        """Return for each message that no guess explains it: plays cannot tell that no other one does better."""
        return [False] * len(inputs)

    def at_truth(self, truth: Sequence[GroundTruth]) -> Tensor:
        """Return the same number of the true examples, for metrics."""
        return self.score(
            [ground_truth.raw.inputs for ground_truth in truth], [ground_truth.raw.labels for ground_truth in truth]
        )

    def _lowest(self, place: int, guess: Tensor | None, labels: Tensor | None) -> float:
        moment = self._moments[place]
        if guess is None or len(guess) != moment.parties * moment.examples:
            return math.inf
        distances = (
            self._distance(place, Batch(guess, assumed)) for assumed in _labels(guess, labels, self.view.task.classes)
        )
        return min(distances, default=math.inf)

    def _distance(self, place: int, batch: Batch) -> float:
        message, played = self.exchanges[place].sent.tensors, self._changes[place]
        members = torch.arange(len(batch)).expand(PLAYS, -1)
        # The same draws for every guess, so that chance favours none.
        rng = stream(self._seed, "plays", place)
        plays = shadow_messages(self.view.task, self._moments[place], batch, members, rng, self.defence)
        return min(_difference(message, {name: tensor[0] for name, tensor in play.items()}, played) for play in plays)


def _labels(guess: Tensor, labels: Tensor | None, classes: int) -> Iterator[Tensor]:
    """Give the labels of a guess; if it has none, each that a single example may have."""
    if (
        labels is not None
        and not labels.is_floating_point()
        and labels.shape == (len(guess),)
        and bool(labels.min() >= 0)
    ):
        yield labels
    elif len(guess) == 1 and classes <= MOST_CLASSES:
        yield from torch.arange(classes).to(guess.device)[:, None]


def _difference(message: Tensors, play: Tensors, played: dict[str, TensorChange]) -> float:
    """Return how far a play is from a message, each tensor in units of what is drawn in it."""
    total = 0.0
    for name, tensor in message.items():
        if name not in play or play[name].shape != tensor.shape:
            continue
        seen, own, variance = tensor, play[name], 0.0
        if name in played:
            variance = played[name].variance
            seen, own = (played[name].clean(each) for each in (seen, own))
        floor = (ROUNDING * float(seen.abs().max())) ** 2
        total += float((seen - own).double().square().sum()) / (2 * (variance + floor) + 1e-60)
    return total
