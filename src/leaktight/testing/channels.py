"""What every defence promises of its channel: messages that it really sends agree with what it states."""

from __future__ import annotations

import dataclasses

import scipy.stats
import torch
from torch import Tensor

from leaktight.channels.calibration import deviations, standardise
from leaktight.channels.gradient import outward, push_examples
from leaktight.channels.likelihood import negative_log_likelihood
from leaktight.core.channel import Belief, Channel, Outcome, Stage, push_all
from leaktight.core.defence import Defence, Gradient
from leaktight.core.local import Local
from leaktight.core.message import Kind, Message, Tensors
from leaktight.core.random import stream
from leaktight.core.task import Batch, Task
from leaktight.defences.cut_gradient import CutDefence
from leaktight.learning.gradient import gradient
from leaktight.testing.conformance import require
from leaktight.testing.cut import binary, cut_message
from leaktight.testing.toys import PARTY, toy_batch, toy_task

DRAWS = 200
"""How many messages are drawn."""
_SIGMAS = 6.0
"""How many standard errors a mean or a variance may be off.

By chance alone this happens less than once in a hundred million times.
"""
_RARE = 1e-9
_MANY = 2000
"""How many numbers a fourth moment is taken of at least."""
_EXACT = 2e-5
"""By which part of the largest entry exact entries may be rounded."""
_PIXEL = 1.5 / 255
"""How far a changed image may be on average from what its outcome says: both round to 8 bits."""


def check_channel(defence: Defence, kind: Kind = Kind.GRADIENT, draws: int = DRAWS) -> None:
    """Messages drawn from the real defence agree with its channel at the true examples.

    Exact entries are exact, no more entries come than a mask lets out, those that were not sent are within their
    bounds, and what is random, brought to the standard normal law by what the channel says, has mean 0, variance 1 and
    fourth moment 3, over all entries and for each tensor, with a mean of 0 in every entry and no entries that go along.
    Changed examples are among the stated outcomes, as often as stated. A channel that does not claim to be complete is
    checked for its form alone. Where a law is an approximation (`standardise` says which), nothing random is checked.

    Args:
        defence: the defence.
        kind: of messages that it accepts: gradients, or cut gradients of split learning. Others are not checked.
        draws: how many messages are drawn.

    Example:
        >>> from leaktight.defences import GaussianNoise
        >>> check_channel(GaussianNoise(std=0.5))
    """
    if kind not in (Kind.GRADIENT, Kind.CUT_GRADIENT):
        return
    sender = _CutSender(defence) if kind is Kind.CUT_GRADIENT else _Sender(defence)
    _check_form(defence, sender.channel)
    _check_off(defence)
    claimed = kind is Kind.CUT_GRADIENT or sender.channel.complete or not defence.states_channel
    require(
        claimed,
        f"{defence} must state a complete channel if it says that it does (`states_channel`). Got one that is not.",
    )
    if not sender.channel.complete:
        return
    sent = [sender.send(number) for number in range(draws)]
    _check_examples(defence, sender.channel, sender.raw, [used for used, _, _ in sent])
    rng = stream(0, "standardise")
    numbers: dict[str, list[Tensor]] = {}
    for number, (_, belief, observed) in enumerate(sent):
        _check_sure(defence, belief, observed)
        _check_left_out(defence, belief, observed)
        if number == 0:
            _check_likelihood(defence, belief, observed)
        for name, standard in standardise(belief, observed, rng).items():
            numbers.setdefault(name, []).append(standard.flatten())
    tables = {name: torch.stack(rows) for name, rows in numbers.items()}
    for name, table in tables.items():
        _check_normal(f"{defence} in `{name}`", table)
    if tables:
        _check_normal(str(defence), torch.cat(list(tables.values()), 1))


@dataclasses.dataclass
class _Sender:
    """A party that sends gradients of the same examples again and again, and what its channel says of them."""

    defence: Defence

    def __post_init__(self) -> None:
        self.raw, self.local = toy_batch(), Local(PARTY, 0)
        self.local.now.examples, self.local.now.batch = len(self.raw), self.raw
        self.public = self.defence.on_agree(toy_task())
        self.channel = self.defence.channel(self.public)
        self.own = self.defence.on_task(self.public, self.local)
        self.last: tuple[Batch, Gradient, Belief] | None = None

    def send(self, round: int) -> tuple[Batch, Belief, Tensors]:
        """Return the examples that a message was made from, what the channel says of it, and the message.

        Where outcomes last, every message is the first of another party.
        """
        if self.channel.lasting:
            self.local.memory.clear()
        self.local.begin(round)
        used = self.local.now.batch = self.defence.on_batch(self.raw, self.local)
        clean, belief = self._clean(used)
        mean = self.own.outward(self.defence.on_gradient(clean, self.local).mean().tensors)
        message = Message(Kind.GRADIENT, PARTY, "server", round, mean, {"examples": float(len(used))})
        sent = self.defence.on_message(message, self.local).tensors
        return used, belief, sent

    def _clean(self, used: Batch) -> tuple[Gradient, Belief]:
        """Return the gradient of these examples, and what the channel says of a message.

        If the examples are those of the last call, it returns the same again.
        """
        if self.last is None or not torch.equal(self.last[0].inputs, used.inputs):
            clean = gradient(self.own, self.own.model.tensors(), used, per_example=self.defence.per_example)
            self.last = used, clean, self._push(self.own if self.channel.private_task else self.public, used)
        return self.last[1:]

    def _push(self, task: Task, used: Batch) -> Belief:
        each = bool(self.channel.example)
        tensors = gradient(task, task.model.tensors(), used, per_example=each).tensors
        mean = push_examples(self.channel.example, tensors) if each else Belief(tensors, examples=len(used))
        return push_all(self.channel.message, outward(push_all(self.channel.step, mean), task.wire))


class _CutSender:
    """A label party that sends the same cut gradient again and again, and what its channel says of it."""

    def __init__(self, defence: Defence) -> None:
        self.defence, self.local, self.task = defence, Local(PARTY, 0), toy_task()
        self.raw = binary(toy_batch(16))
        clean = cut_message(self.task, self.raw).tensors
        self.channel = (
            defence.cut_channel(clean, self.raw.labels)
            if isinstance(defence, CutDefence)
            else defence.channel(self.task)
        )

    def send(self, round: int) -> tuple[Batch, Belief, Tensors]:
        """Return the examples that a message was made from, what the channel says of it, and the message."""
        self.local.now.batch = self.raw
        self.local.begin(round)
        used = self.local.now.batch = self.defence.on_batch(self.raw, self.local)
        clean = cut_message(self.task, used, round)
        belief = push_all(self.channel.message, Belief(clean.tensors))
        return used, belief, self.defence.on_message(clean, self.local).tensors


def _check_form(defence: Defence, channel: Channel) -> None:
    stages = (*channel.example, *channel.step, *channel.message)
    require(
        all(isinstance(stage, Stage) for stage in stages), f"{defence} must state its channel in stages. Got {stages}."
    )
    total = sum(outcome.weight for outcome in channel.outcomes)
    sound = all(outcome.weight > 0 for outcome in channel.outcomes) and total <= 1 + 1e-6
    require(sound, f"{defence} must give each outcome a probability. They sum to {total:.3g}.")
    whole = not channel.outcomes or not channel.complete or total >= 1 - 1e-6
    require(
        whole,
        f"{defence} must state outcomes whose probabilities sum to 1, or not claim to be complete. Got {total:.3g}.",
    )


def _check_off(defence: Defence) -> None:
    """At the strength that means off, other settings as they are by default, the channel leaves everything as it is."""
    strength = defence.strength
    if strength is None or strength.off is None:
        return
    own = getattr(defence, strength.field)
    off = defence.with_strength(type(own)(strength.off))
    known = set(type(defence).model_fields) - {strength.field, "kind"}
    if any(getattr(defence, name) != type(defence).model_fields[name].get_default() for name in known):
        return
    channel = off.channel(off.on_agree(toy_task()))
    require(
        channel == Channel(), f"{off} must state that it does nothing, because {strength.off} means off. Got {channel}."
    )


def _check_examples(defence: Defence, channel: Channel, raw: Batch, used: list[Batch]) -> None:
    labels = all(torch.equal(batch.labels, raw.labels) for batch in used)
    require(
        labels, f"{defence} must state what it does to labels. It changed them, and its channel claims to be complete."
    )
    if not channel.outcomes:
        same = all(torch.equal(batch.inputs, raw.inputs) for batch in used)
        require(
            same, f"{defence} must state what may become of examples. It changed some, and its channel has no outcomes."
        )
        return
    images = torch.stack([outcome.change(raw.inputs) for outcome in channel.outcomes])
    drawn = torch.stack([batch.inputs for batch in used])
    statistic, freedom = 0.0, 0
    for place in range(len(raw)):
        seen, stated = drawn[:, place].flatten(1), images[:, place].flatten(1)
        distances = torch.cdist(seen, stated, p=1) / seen.shape[1]
        nearest = distances.min(1)
        missed = float(nearest.values.max())
        require(
            missed <= _PIXEL,
            f"{defence} must state all that may become of examples. One is {missed:.2g} from every outcome.",
        )
        more, degrees = _frequencies(nearest.indices, stated, channel.outcomes)
        statistic, freedom = statistic + more, freedom + degrees
    likely = freedom == 0 or scipy.stats.chi2.sf(statistic, freedom) > _RARE
    require(
        likely,
        f"{defence} must state how likely each outcome is. Chi-square is {statistic:.0f} at {freedom} degrees of "
        "freedom.",
    )


def _frequencies(nearest: Tensor, stated: Tensor, outcomes: tuple[Outcome, ...]) -> tuple[float, int]:
    """Return chi-square of how often each outcome was seen, and its degrees of freedom.

    Outcomes that look alike or are rare count as one.
    """
    close = torch.cdist(stated, stated, p=1) / stated.shape[1] <= 2 * _PIXEL
    # Each outcome joins the first that looks like it, or like one that does.
    joined = torch.linalg.matrix_power(close.double(), len(outcomes)).bool().int().argmax(1).tolist()
    expected: dict[int, float] = {}
    seen: dict[int, float] = {}
    for group, outcome in zip(joined, outcomes, strict=True):
        expected[group] = expected.get(group, 0.0) + outcome.weight * len(nearest)
    for index in nearest.tolist():
        seen[joined[index]] = seen.get(joined[index], 0.0) + 1
    rare = [group for group in expected if expected[group] < 5]
    cells = [(expected[group], seen.get(group, 0.0)) for group in expected if group not in rare]
    if rare:
        cells.append((sum(expected[group] for group in rare), sum(seen.get(group, 0.0) for group in rare)))
    return sum((count - mean) ** 2 / mean for mean, count in cells), len(cells) - 1


def _check_sure(defence: Defence, belief: Belief, observed: Tensors) -> None:
    """The tensors that come are those that are stated; exact entries are exact, and bounds hold."""
    names = list(belief.means)
    require(
        names == list(observed),
        f"{defence} must send the tensors that its channel states. Got {list(observed)} for {names}.",
    )
    size = max((float(mean.abs().max()) for mean in belief.means.values() if mean.numel()), default=0.0)
    for name, beyond in deviations(belief, observed).items():
        furthest = float(beyond.max()) if beyond.numel() else 0.0
        require(
            furthest <= _EXACT * size,
            f"{defence} must state all that it does to `{name}`. An entry is {furthest:.2g} beyond what its channel "
            "allows.",
        )


def _check_left_out(defence: Defence, belief: Belief, observed: Tensors) -> None:
    """No more entries come than a stated mask lets out; noise on all of them would hide which do."""
    for mask in belief.masks.values():
        if not mask.count or not all(belief.noise_of(name).is_none for name in mask.group):
            continue
        came = sum(int((observed[name] != 0).sum()) for name in mask.group if name in observed)
        require(
            came <= mask.count,
            f"{defence} must leave out what its channel says that it leaves out. {came} entries came where "
            f"{mask.count} are stated.",
        )


def _check_likelihood(defence: Defence, belief: Belief, observed: Tensors) -> None:
    if not observed:
        return
    floor = {name: 1e-6 * max(float(tensor.abs().max()), 1e-30) for name, tensor in observed.items()}
    value = float(negative_log_likelihood(belief, observed, floor))
    require(
        abs(value) < torch.inf,
        f"{defence} must state a channel under which its messages are possible. Got a cost of {value}.",
    )


def _check_normal(who: str, table: Tensor) -> None:
    """Numbers by draw and entry are independent and standard normal, as far as their moments tell."""
    finite = table.isfinite()
    numbers = table[finite]
    if len(numbers) < 2:
        return
    mean, variance = float(numbers.mean()), float(numbers.square().mean())
    _near(who, "a mean", mean, 0.0, 1 / len(numbers) ** 0.5)
    _near(who, "a variance", variance, 1.0, (2 / len(numbers)) ** 0.5)
    if len(numbers) >= _MANY:
        _near(who, "a fourth moment", float(numbers.pow(4).mean()), 3.0, (96 / len(numbers)) ** 0.5)
    whole = table[:, finite.all(0)]
    draws, entries = whole.shape
    if entries:
        # Of each entry over all draws, and of each draw over all entries.
        _near(
            who, "a squared mean of each entry", float((whole.mean(0) ** 2).mean()) * draws, 1.0, (2 / entries) ** 0.5
        )
        _near(
            who, "a squared mean of each message", float((whole.mean(1) ** 2).mean()) * entries, 1.0, (2 / draws) ** 0.5
        )


def _near(who: str, what: str, measured: float, stated: float, error: float) -> None:
    # A square of one normal number has a longer tail than a normal law of the same variance: few of them may be further
    # off.
    allowed = _SIGMAS * error * (1 + error * _SIGMAS / 2)
    require(
        abs(measured - stated) <= allowed,
        f"{who} must state the law of its noise. Standardised by its channel, its messages have {what} of "
        f"{measured:.3g}, which must be {stated:g} within {allowed:.2g}.",
    )
