"""Played channels: learn what an unstated defence does to messages by playing it, and undo what can be undone."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

import torch
from torch import Tensor

from leaktight.attacks.shadow import Moment, group_by_moment, shadow_messages
from leaktight.channels import StatedNoise
from leaktight.core.channel import Channel, Noise
from leaktight.core.defence import Defence
from leaktight.core.errors import Refusal
from leaktight.core.message import Kind, Tensors
from leaktight.core.random import Stream
from leaktight.core.task import Batch, Task
from leaktight.core.threat import View

EXAMPLES, TIMES = 8, 8
"""How many different examples are played at first, and how often each."""
MOST_PLAYS = 2048
"""How often a defence is played at most, as long as it shows something new that it may show again."""
MOST_NUMBERS = 1 << 27
"""How many numbers of outcomes are kept: half a gigabyte."""
SAME = 1e-4
"""How far two outcomes may be apart to count as one, as a share of their size: both are rounded."""
COMPARED = 64
"""By how many entries outcomes are compared."""
ALIKE = 4.0
"""Within which factor the variance of what is drawn must be the same for unlike examples, to be noise that is added."""


@dataclasses.dataclass(frozen=True)
class TensorChange:
    """What plays show about one tensor of a message.

    Args:
        outcomes: (outcomes, *shape) what is added to it, if that is one of few things; one row of zeros if nothing is.
        variance: of what is drawn anew each time, beside that.
        added: whether these two are all that happens to it.
    """

    outcomes: Tensor
    variance: float
    added: bool

    def clean(self, tensor: Tensor) -> Tensor:
        """Return a tensor without what was added to it: of several outcomes, that which leaves least."""
        left = tensor - self.outcomes.to(tensor)
        return left[left.reshape(len(left), -1).norm(dim=1).argmin()]


MomentChanges = tuple[dict[str, TensorChange], list[int]]
"""What plays show about each tensor, and the places of the messages that it holds for."""


class PlayedDefence(Defence):
    """What remains of a defence once messages are cleaned of what plays show: noise of known variance per tensor.

    Args:
        variances: of each tensor, by wire name.
        whole: whether nothing else is left.
    """

    variances: dict[str, float]
    whole: bool

    @property
    def states_channel(self) -> bool:
        """Whether nothing else is left."""
        return self.whole

    def channel(self, task: Task) -> Channel:
        """State the noise."""
        noise = {name: Noise(variance) for name, variance in self.variances.items()}
        stages = (StatedNoise(noise),) if any(self.variances.values()) else ()
        return Channel(message=stages, complete=self.whole)


def play(view: View, defence: Defence, rng: Stream) -> list[MomentChanges]:
    """Play a defence, and return what that shows about the messages of each moment, with their places.

    The attacker needs nothing but the defence: it plays it on examples at random, each several times, and compares with
    what would have been sent without it.

    Args:
        view: what the attacker sees.
        defence: what all participants do.
        rng: where examples and the draws of plays come from.

    Raises:
        Refusal: the messages cannot be played.
    """
    groups = group_by_moment(view, view.exchanges())
    return [(_Plays(view.task, moment, defence, rng).learn(), places) for moment, places in groups]


def remaining_defence(changes: Sequence[MomentChanges]) -> PlayedDefence:
    """Return what remains of a defence once messages are cleaned."""
    parts = [part for played, _ in changes for part in played.items()]
    variances = {name: max((p.variance for n, p in parts if n == name and p.added), default=0.0) for name, _ in parts}
    # Not by its constructor, which wants a kind: nobody writes it in a plan.
    return PlayedDefence.model_construct(variances=variances, whole=all(part.added for _, part in parts))


def clean(view: View, changes: Sequence[MomentChanges], left: PlayedDefence) -> View:
    """Return the view with messages cleaned of what plays show, under a defence that states what is left."""
    exchanges = view.exchanges()
    if not {exchange.sent.key for exchange in exchanges} <= {message.key for message in view.messages}:
        raise Refusal("Only messages that the attacker has seen itself can be cleaned of what a defence adds.")
    tensors: dict[object, Tensors] = {}
    for played, places in changes:
        for place in places:
            sent = exchanges[place].sent
            tensors[sent.key] = {n: played[n].clean(t) if n in played else t for n, t in sent.tensors.items()}
    messages = tuple(
        dataclasses.replace(message, tensors=tensors[message.key])
        if message.key in tensors and message.kind in (Kind.GRADIENT, Kind.UPDATE)
        else message
        for message in view.messages
    )
    return dataclasses.replace(view, messages=messages, defence=left)


class _Plays:
    """What a defence did to messages about examples at random."""

    def __init__(self, task: Task, moment: Moment, defence: Defence, rng: Stream) -> None:
        if moment.local_steps > 1:
            raise Refusal(
                "What a defence adds to an update of several local steps cannot be told from plays: their order "
                "differs."
            )
        self.task, self.moment, self.defence, self.rng = task, moment, defence, rng

    def learn(self) -> dict[str, TensorChange]:
        """Play the defence until it shows nothing new that may come again."""
        sizes, changes = self._changes(EXAMPLES, TIMES)
        known = {name: _outcomes(change, sizes[name]) for name, change in changes.items()}
        again = {name: outcomes for name, outcomes in known.items() if outcomes is not None and len(outcomes) > 1}
        played = EXAMPLES * TIMES
        while again and played < MOST_PLAYS:
            _, more = self._changes(EXAMPLES * TIMES, 1)
            played += EXAMPLES * TIMES
            grown = {
                name: _distinct(torch.cat([before, more[name].flatten(0, 1)]), sizes[name])
                for name, before in again.items()
            }
            known |= grown
            again = {n: rows for n, rows in grown.items() if len(rows) > len(again[n]) and rows.numel() < MOST_NUMBERS}
        return {name: _summarise(change, known[name], sizes[name]) for name, change in changes.items()}

    def _changes(self, examples: int, times: int) -> tuple[dict[str, float], dict[str, Tensor]]:
        """Return the size of each tensor without the defence, and what it adds, (examples, times, *shape).

        Tensors that come in another shape are left out.
        """
        behind = self.moment.parties * self.moment.examples
        pool = _examples(self.task, examples * behind, self.rng)
        members = torch.arange(examples * behind).view(examples, behind)
        without = _stack(shadow_messages(self.task, self.moment, pool, members, self.rng))
        sent = _stack(
            shadow_messages(self.task, self.moment, pool, members.repeat_interleave(times, 0), self.rng, self.defence)
        )
        shared = [name for name, tensor in without.items() if name in sent and sent[name].shape[1:] == tensor.shape[1:]]
        sizes = {name: max(float(without[name].abs().max()), float(sent[name].abs().max()), 1e-30) for name in shared}
        return sizes, {
            name: sent[name].view(examples, times, *without[name].shape[1:]) - without[name][:, None] for name in shared
        }


def _examples(task: Task, count: int, rng: Stream) -> Batch:
    """Return examples at random, dark ones and bright ones, so that what depends on an example shows."""
    shape = (count, *task.shape)
    inputs = torch.rand(shape, generator=rng) if len(task.shape) == 3 else torch.randn(shape, generator=rng)
    bright = torch.rand(count, generator=rng).view(-1, *(1,) * len(task.shape))
    labels = torch.randint(task.classes, (count,), generator=rng)
    return Batch((inputs * bright).to(task.device), labels.to(task.device))


def _stack(messages: Iterable[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    rows = list(messages)
    return {name: torch.cat([row[name] for row in rows]) for name in rows[0]}


def _outcomes(changes: Tensor, size: float) -> Tensor | None:
    """Return the different things that were added to a tensor; None if nothing was added to two examples alike."""
    distinct = _distinct(changes.flatten(0, 1), size)
    return distinct if len(distinct) < sum(len(_distinct(own, size)) for own in changes) else None


def _distinct(rows: Tensor, size: float) -> Tensor:
    """Return rows of which none is that of another, by a few of their entries."""
    flat = rows.reshape(len(rows), -1)
    few = flat[:, :: max(1, flat.shape[1] // COMPARED)]
    same = torch.cdist(few, few, p=torch.inf, compute_mode="donot_use_mm_for_euclid_dist") <= SAME * size
    return rows[~same.tril(-1).any(1)]


def _summarise(changes: Tensor, outcomes: Tensor | None, size: float) -> TensorChange:
    """Return what plays show about one tensor.

    Args:
        changes: (examples, times, *shape) what the defence added.
        outcomes: the few things that it adds, if so.
        size: the largest magnitude in messages.
    """
    rounding, nothing = (SAME * size) ** 2, torch.zeros_like(changes[0, :1])
    if outcomes is not None:
        return TensorChange(outcomes, 0.0, added=True)
    rows = changes.double().reshape(*changes.shape[:2], -1)
    drawn = rows.var(1).mean(1)
    variance, count = float(drawn.mean()), rows.shape[0] * rows.shape[1]
    if variance <= rounding:
        # The same each time, and another for every example: no noise.
        return TensorChange(nothing, 0.0, added=False)
    constant = rows.mean((0, 1))
    between = float((rows.mean(1) - constant).square().mean())
    added = bool(drawn.max() <= ALIKE * drawn.min()) and between <= 2 * variance / rows.shape[1]
    if not added:
        return TensorChange(nothing, variance, added=False)
    offset = (
        constant.view_as(nothing).to(nothing) if float(constant.square().mean()) > 2 * variance / count else nothing
    )
    return TensorChange(offset, variance, added=True)
