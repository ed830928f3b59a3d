"""Analytic recovery: algebra on a linear layer's gradient gives what the layer saw, for one example or a batch."""

from __future__ import annotations

import dataclasses
import math
from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from leaktight.attacks.batch_reading import read_batch
from leaktight.attacks.label_reading import can_read_labels, labels_by_head, read_labels
from leaktight.attacks.linear_layer import LinearLayer, augment, first_linear_of_inputs
from leaktight.attacks.peeling import NEAR
from leaktight.attacks.rank_one import ROUNDING, RankOne, entry_variances, fit_rank_one, visible_variances
from leaktight.attacks.replay import Replay
from leaktight.core.attack import Attack, Principle, Reconstruction
from leaktight.core.defence import Defence
from leaktight.core.errors import Refusal
from leaktight.core.message import Kind
from leaktight.core.random import Stream
from leaktight.core.task import Normalise, Task
from leaktight.core.threat import Exchange, Knows, View

EXACT = 0.01
"""How far off an example may be to count as read: of the range of a pixel, or of its own unit."""
SURE = 4.0
"""Within how many standard deviations of its noise a reading is taken to be."""
HIDDEN = 2.0
"""Below how many standard deviations of its noise the entry that gives the scale says nothing."""
ALIKE = 0.1
"""How far slopes may be from those of a label, as a share of their length, for the label to be read off them."""


UNEVEN = 4.0
"""How many times what is left of the weights may be left of the bias where an example is certified."""


class Analytic(Attack):
    r"""Read the examples off the first linear layer, without any search.

    For z = W x + b and any loss, \(dL/dW = \delta x^T\) and \(dL/db = \delta\). One example is read off all rows at
    once, by total least squares (`rank_one`): exact without noise, and with noise on every entry as good as the mean
    over all units. If the attacker knows the defence, each entry counts by its law: noise by its variance, what a mask
    left out by the bound that this tells, and clipping not at all. A batch is read by `peeling` and, for what that
    leaves, `spear`, where a ReLU follows on the layer. What they certify is marked so; the others are answered by the
    rows of the gradient that mix fewest examples.

    A private loss changes nothing for one example; of a batch it takes the labels, and larger batches (about 12 instead
    of 16 behind 128 units) are read in part.

    What it needs: a model whose body begins with a linear layer (after flattening), and that layer's gradient. Without
    the bias one example is read up to a factor, which the range of pixels tells.

    Args:
        draws: how many draws SPEAR makes, at most, each time that peeling is stuck, at least 0.

    Example:
        >>> Analytic().simple
        True

    Differs from the paper: total least squares for one row; see `peeling` and `spear`.

    References: Aono et al. 2017, Eq. 4; Geiping et al. 2020, Proposition 3.1; Shariati and Meybodi 2026; Dimitrov et
        al. 2024.
    """

    kind: Literal["analytic"] = "analytic"
    claims: ClassVar[frozenset[str]] = frozenset({"inputs", "labels"})
    goals: ClassVar[tuple[str, ...]] = ("rebuild the examples", "read off the labels")
    principle: ClassVar[Principle] = "algebra"
    simple: ClassVar[bool] = True
    draws: int = Field(4096, ge=0)

    @property
    def wants(self) -> frozenset[Knows]:
        """The defence, by whose law it weighs entries."""
        return frozenset({Knows.DEFENCE})

    def models(self, defence: Defence) -> bool:
        """Model every defence that states its channel, unless it changes examples: such changes are not undone."""
        return defence.states_channel and "on_batch" not in defence.hooks()

    def run(self, view: View, rng: Stream) -> Reconstruction:
        """Answer every gradient and update in view."""
        name = first_linear_of_inputs(view.task.model, math.prod(view.task.shape))
        if name is None:
            raise Refusal(
                "The analytic attack needs a model that begins with a linear layer with bias. Use gradient matching "
                "instead."
            )
        exchanges = view.exchanges()
        senders = [_Sender(view, exchange, name) for exchange in exchanges]
        if not senders or not all(sender.is_readable for sender in senders):
            raise Refusal(
                f"The analytic attack needs the gradients of `{name}` in every message. Not all of them are shared."
            )
        recoveries = [
            sender.read_one(rng) if sender.examples == 1 else sender.read_several(self.draws, rng) for sender in senders
        ]
        labels = tuple(recovery.labels for recovery in recoveries)
        known = not view.labels and any(bool((each >= 0).any()) for each in labels)
        return Reconstruction(
            keys=tuple(exchange.sent.key for exchange in exchanges),
            inputs=tuple(_natural(view.task, recovery.seen) for recovery in recoveries),
            labels=labels if known else None,
            certified=tuple(recovery.certified for recovery in recoveries),
        )


@dataclasses.dataclass(frozen=True)
class _Recovery:
    """What the layer saw of each example, (examples, width), the labels, -1 if unknown, and which are certified."""

    seen: Tensor
    labels: Tensor
    certified: Tensor


class _Sender:
    """A message and what the attacker knows of its sender.

    Args:
        view: what the attacker has.
        exchange: the message and the parameters that it answers.
        name: the first linear layer.
    """

    def __init__(self, view: View, exchange: Exchange, name: str) -> None:
        self.task, self.exchange = view.task, exchange
        self.examples = int(exchange.sent.facts["examples"])
        self.layer = LinearLayer.of(view.task, exchange.parameters, name, _box(view.task))
        self.wires = [str(view.task.wire(f"{name}.{part}")) for part in ("weight", "bias")]
        self.replay = _replay(view, exchange)
        self.public = self.replay is None or not self.replay.channel.private_task

    @property
    def is_readable(self) -> bool:
        """Whether the layer's gradient came; without its bias's, one image can still be read."""
        weight, bias = (wire in self.exchange.sent.tensors for wire in self.wires)
        return weight and (bias or (self.examples == 1 and self.layer.low is not None))

    def read_one(self, rng: Stream) -> _Recovery:
        """Read one example off all rows."""
        law, gradient = self._variances(), self._gradient()
        law = visible_variances(gradient) if law is None else law
        fit = fit_rank_one(gradient, None if law is None else 1 / law)
        seen, clear = _scale(fit, self.layer)
        label = self._label(seen, fit)
        labels = self._fill(torch.tensor([label]), rng)
        valid = bool(self.layer.outside(seen[None])[0] < NEAR) and _is_even(fit, gradient, law)
        # An attacker who does not know the whole channel trusts a reading only if the network's own slopes confirm it.
        sure = label >= 0 if self.replay is None else self.replay.channel.complete
        return _Recovery(seen[None, :-1], labels, torch.tensor([clear and valid and sure]))

    def read_several(self, draws: int, rng: Stream) -> _Recovery:
        """Read the examples of a batch."""
        law, rate = self._variances(), self._rate()
        noise = 0.0 if law is None else law.mean().sqrt().item() / abs(rate)
        reading = read_batch(
            self._gradient() / rate, self.layer, self.examples, draws, rng, public=self.public, noise=noise
        )
        labels = reading.labels
        if bool(reading.certified.all()) and not bool((labels >= 0).all()):
            labels = labels_by_head(self.layer, reading.seen, self._as_gradient())
        return _Recovery(reading.seen[:, :-1], self._fill(labels, rng), reading.certified)

    def _as_gradient(self) -> dict[str, Tensor]:
        """Return what came as a gradient."""
        rate = self._rate()
        return {name: tensor / rate for name, tensor in self.exchange.sent.tensors.items()}

    def _gradient(self) -> Tensor:
        """Return what came of the layer, zero where nothing did."""
        sent = self.exchange.sent.tensors
        weight = sent[self.wires[0]]
        return augment(weight, sent.get(self.wires[1], torch.zeros_like(weight[:, 0])))

    def _rate(self) -> float:
        """Return by what an update of one step is divided to be a gradient."""
        sent = self.exchange.sent
        return -float(sent.facts.get("learning_rate", 1.0)) if sent.kind is Kind.UPDATE else 1.0

    def _variances(self) -> Tensor | None:
        """Return the variance of each entry by the known channel; None if there is none, or it changes nothing."""
        sent = self.exchange.sent.tensors
        if self.wires[1] not in sent:
            unknown = torch.full_like(self._gradient(), 1.0)
            unknown[:, -1] = 1e30
            return unknown
        if self.replay is None or not (self.replay.channel.step or self.replay.channel.message):
            return None
        variances = entry_variances(self.replay, sent)
        return augment(variances[self.wires[0]], variances[self.wires[1]])

    def _label(self, seen: Tensor, fit: RankOne) -> int:
        """Return the label whose slopes are those of the gradient; -1 if none is, as under a private loss."""
        if not self.public or not bool(seen.isfinite().all()):
            return -1
        slopes = self.layer.slopes(seen[None])[0]
        own = fit.slopes * fit.seen[-1].sign() * (1 if self._rate() > 0 else -1)
        cosine = (slopes @ own) / (slopes.norm(dim=1) * own.norm()).clamp(min=1e-300)
        best = int(cosine.argmax())
        return best if cosine[best] > 1 - ALIKE**2 / 2 else -1

    def _fill(self, labels: Tensor, rng: Stream) -> Tensor:
        """Return labels with the unknown ones as they are read off the last layer, if they can be."""
        unknown = labels < 0
        replay = self.replay or _replay_by_facts(self.task, self.exchange)
        sent = self.exchange.sent.tensors
        if not bool(unknown.any()) or replay is None or not can_read_labels(replay, sent):
            return labels
        rest = read_labels(replay, self.exchange.parameters, sent, rng).tolist()
        for label in labels[~unknown].tolist():
            if label in rest:
                rest.remove(label)
        filled = labels.clone()
        filled[unknown] = torch.tensor(rest[: int(unknown.sum())], dtype=torch.long)
        return filled


def _replay_by_facts(task: Task, exchange: Exchange) -> Replay | None:
    """Return the sender as its public facts describe it; None where they do not."""
    if exchange.sent.kind is Kind.UPDATE and "local_steps" not in exchange.sent.facts:
        return None
    return Replay.of(task, exchange.sent)


def _replay(view: View, exchange: Exchange) -> Replay | None:
    """Return the sender with the channel of its defence; None if the attacker does not know it."""
    replay = _replay_by_facts(view.task, exchange)
    if view.defence is None or replay is None:
        return None
    return dataclasses.replace(replay, channel=view.defence.channel(view.task))


def _box(task: Task) -> tuple[Tensor, Tensor] | None:
    """Return the least and the largest value that the layer can see of each pixel; None for what is no image."""
    if len(task.shape) != 3:
        return None
    with torch.no_grad():
        ends = [
            task.model.normalise(torch.full((1, *task.shape), end, device=task.device)).flatten() for end in (0.0, 1.0)
        ]
    return torch.minimum(*ends), torch.maximum(*ends)


def _scale(fit: RankOne, layer: LinearLayer) -> tuple[Tensor, bool]:
    """Return y with last entry 1, and whether noise leaves each of its entries within what counts as exact.

    Where noise hides the last entry, or it did not come, an image is made as large as its pixels' range allows.
    """
    last, doubt = fit.seen[-1].abs().item(), fit.spread[-1].item()
    if last > HIDDEN * doubt:
        seen = fit.seen / fit.seen[-1]
        blur = (fit.spread + seen.abs() * doubt)[:-1] / last
        unit = 1.0 if layer.low is None or layer.high is None else layer.high - layer.low
        return seen, bool((SURE * blur / unit < EXACT).all())
    if layer.low is None or layer.high is None:
        return (fit.seen / fit.seen[-1] if last else torch.zeros_like(fit.seen)), False
    return torch.cat([_fit_box(fit.seen[:-1], layer.low, layer.high), torch.ones(1).double()]), False


def _is_even(fit: RankOne, gradient: Tensor, law: Tensor | None) -> bool:
    """Return whether the bias fits as well as the weights, where all entries have one law; else it was changed."""
    if law is not None:
        return True
    left = (gradient.double() - torch.outer(fit.slopes, fit.seen)).square().mean(0).sqrt()
    rounding = ROUNDING * gradient.double().abs().max()
    return bool(left[-1] <= UNEVEN * left[:-1].mean() + rounding)


def _fit_box(direction: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """Return the longest multiple of a direction, of either sign, that lies in a box."""
    multiples = []
    for sign in (1.0, -1.0):
        ahead = sign * direction
        room = torch.where(ahead > 0, high, low) / torch.where(ahead == 0, 1.0, ahead)
        multiples.append(sign * torch.where(ahead == 0, torch.inf, room).min().clamp(min=0.0, max=1e30))
    longest = max(multiples, key=abs)
    return direction * longest


def _natural(task: Task, seen: Tensor) -> Tensor:
    """Return inputs in natural units."""
    inputs = seen.float().to(task.device).view(-1, *task.shape).nan_to_num(0.0, 0.0, 0.0)
    if not isinstance(task.model.normalise, Normalise):
        return inputs
    shift, scale = task.model.normalise.units(len(task.shape))
    return inputs * scale + shift
