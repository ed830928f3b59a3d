"""Learned inverter: a regression from messages to examples, learned from messages that the attacker makes itself."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from leaktight.attacks.ridge_inverter import KnownMessages, RidgeInverter
from leaktight.attacks.shadow import Moment, group_by_moment, shadow_messages
from leaktight.core.attack import Attack, Principle, Reconstruction
from leaktight.core.defence import Defence
from leaktight.core.errors import Refusal
from leaktight.core.message import Tensors
from leaktight.core.random import Stream, draw, stream
from leaktight.core.task import Batch
from leaktight.core.threat import Exchange, Knows, View
from leaktight.defences.layer_guard import LayerGuard
from leaktight.defences.sealed import Sealed
from leaktight.defences.withhold import Withhold
from leaktight.priors.moments import class_means

WIDTH = 8192
"""How many numbers a sketch of the entries has, and one of their places; of a smaller message they are all kept."""

_TINY = 1e-30


@dataclasses.dataclass(frozen=True)
class Sketch:
    r"""A linear map of a message's direction, and of which of its entries are zero.

    With g all entries of a message, \(m_i = [g_i \neq 0]\), and for every entry i a bucket h(i) and a sign s(i), draw
    once,

    .. math:: \Big( \sum_{h(i) = j} s(i) \frac{g_i}{\lVert g \rVert} \Big)_j, \qquad
        \Big( \sum_{h(i) = j} s(i) \frac{m_i}{\lVert m \rVert} \Big)_j .

    Inner products of sketches are those of the vectors, up to an error of about one over the root of their number.
    Which entries were sent is information of its own: under top-k sharing it is all that is told about most of them.

    Args:
        names: the tensors that are looked at, by wire name.
        seed: what buckets and signs derive from. Entries that are not finite numbers count as zero.
        width: how many buckets there are.

    Example:
        >>> sketch = Sketch(("weight",), seed=0)
        >>> sketch({"weight": torch.tensor([[3.0, 0.0, 4.0, 0.0]])}).tolist()
        [[0.6000000238418579, 0.0, 0.800000011920929, 0.0, 0.7071067690849304, 0.0, 0.7071067690849304, 0.0]]

    References: Charikar, Chen and Farach-Colton, Finding Frequent Items in Data Streams, 2002 (the count sketch).
    """

    names: Sequence[str]
    seed: int
    width: int = WIDTH

    def __call__(self, tensors: Tensors) -> Tensor:
        """Return a row for each message; messages are along the first dimension of every tensor."""
        entries = torch.cat(
            [tensors[name].detach().float().reshape(len(tensors[name]), -1) for name in self.names], 1
        ).nan_to_num(0.0, 0.0, 0.0)
        return torch.cat([self._hash(_unit(entries)), self._hash(_unit((entries != 0).float()))], 1)

    def _hash(self, rows: Tensor) -> Tensor:
        if rows.shape[1] <= self.width:
            return rows
        buckets, signs = _draw_buckets(rows.shape[1], self.width, self.seed)
        return rows.new_zeros(len(rows), self.width).index_add_(1, buckets.to(rows.device), rows * signs.to(rows))


@functools.lru_cache(maxsize=1)
def _draw_buckets(entries: int, width: int, seed: int) -> tuple[Tensor, Tensor]:
    """Return the bucket and the sign of each entry."""
    rng = stream(seed, "sketch")
    return torch.randint(width, (entries,), generator=rng), 2.0 * torch.randint(2, (entries,), generator=rng) - 1


def _unit(rows: Tensor) -> Tensor:
    # Divided by the largest first: the squares of tiny numbers would vanish.
    scaled = rows / rows.abs().amax(1, keepdim=True).clamp_min(_TINY)
    return F.normalize(scaled, dim=1, eps=_TINY)


LEAST_PUBLIC = 10
MOST_EXAMPLES = 16
"""Behind how many examples a message can be inverted, at most."""
MOST_MOMENTS = 16
"""To how many different parameters the attacker learns inverters, at most."""
HELD = 5
"""One of so many public examples, and of so many messages, is held out to choose the settings of the regression by."""


class LearnedInverter(Attack):
    r"""Reconstruct examples by a regression that was learned from messages of public examples under the real defence.

    At the parameters \(\theta\) that victims were handed, the attacker plays participants who own public examples
    (`attacks.shadow`), with draws of noise and secrets of its own, and learns to invert their messages:

    .. math:: \hat x = f(\phi(m)), \qquad f \text{ fitted to } \{(\phi(m_j), x_j)\}, \quad
        m_j \sim \text{message}(x_j; \theta).

    \(\phi\) sketches the direction of a message and which of its entries came (`Sketch`), f is a ridge regression that
    guesses the labels first (`attacks.ridge_inverter`). The defence is in what it learns from, so one attack serves
    every defence: what is noisy, cut out or private in a message is so in those that it learned from, and nothing has
    to be stated about it. How far it can be relied upon is chosen on public examples that were held out.

    Public examples are varied. Half of them are mixed with another of their class, if they are images, and half are
    passed off under a label at random: of what a message tells about an example nothing depends on the two going
    together.

    Behind several examples the labels are guessed, and for each label the mean of its examples. Several local steps,
    and means of several participants, are played as they are. It refuses more than 16 examples behind a message, or
    more than 16 different parameters.

    Args:
        messages: how many messages it makes for each set of parameters, at least 50; a part of it if there are several
            examples behind one. More is stronger and slower, as the cube where it is large.
        models_defence: whether its own messages go through the known defence. Else it learns from undefended ones.

    Example:
        >>> print(LearnedInverter(messages=500))
        learned_inverter(messages=500)
        >>> sorted(map(str, LearnedInverter().needs))
        ['auxiliary', 'defence']

    Differs from the paper: It trains a neural network; with a few hundred public examples a regression by label read
    more in our trials, and sooner. The variations of examples are ours.

    References: Wu et al., Learning to Invert: Simple Adaptive Attacks for Gradient Inversion in Federated Learning,
        2023.
    """

    kind: Literal["learned_inverter"] = "learned_inverter"
    claims: ClassVar[frozenset[str]] = frozenset({"inputs", "labels"})
    goals: ClassVar[tuple[str, ...]] = ("rebuild the examples", "read off the labels")
    principle: ClassVar[Principle] = "learned"
    messages: int = Field(2000, ge=50)
    models_defence: bool = True

    @property
    def needs(self) -> frozenset[Knows]:
        """Public examples; the defence, if it is to be modelled."""
        return frozenset({Knows.AUXILIARY, Knows.DEFENCE} if self.models_defence else {Knows.AUXILIARY})

    def models(self, defence: Defence) -> bool:
        """Model a defence that its own messages go through, if it is `memoryless`: the played parties have no past."""
        if isinstance(defence, LayerGuard):
            return self.adapts_to(defence.guard)
        if isinstance(defence, Sealed | Withhold):
            return True
        return self.models_defence and defence.memoryless

    def run(self, view: View, rng: Stream) -> Reconstruction:
        """Learn an inverter for each set of parameters in view, and ask it about the messages that answer them."""
        exchanges = view.exchanges()
        if not exchanges or not all(exchange.sent.tensors for exchange in exchanges):
            raise Refusal(
                "learned_inverter needs shared gradients or updates. The view holds none, or one without a tensor."
            )
        public = _public(view)
        groups = group_by_moment(view, exchanges)
        if len(groups) > MOST_MOMENTS:
            raise Refusal(
                f"learned_inverter learns anew for every set of parameters, at most {MOST_MOMENTS} times. Got "
                f"{len(groups)} instead; attack fewer moments."
            )
        answers: dict[int, tuple[Tensor, Tensor]] = {}
        for moment, places in groups:
            inputs, labels = self._invert(view, public, moment, [exchanges[place] for place in places], rng)
            answers |= {place: (inputs[row], labels[row]) for row, place in enumerate(places)}
        return Reconstruction(
            keys=tuple(exchange.sent.key for exchange in exchanges),
            inputs=tuple(answers[place][0] for place in range(len(exchanges))),
            labels=tuple(answers[place][1] for place in range(len(exchanges))),
        )

    def _invert(
        self, view: View, public: Batch, moment: Moment, group: Sequence[Exchange], rng: Stream
    ) -> tuple[Tensor, Tensor]:
        """Return the examples and labels behind messages that answer one moment."""
        examples, shape = moment.parties * moment.examples, view.task.shape
        if examples > MOST_EXAMPLES:
            raise Refusal(
                f"learned_inverter inverts messages with at most {MOST_EXAMPLES} examples behind them. Got {examples} "
                "instead."
            )
        defence = view.defence if self.models_defence else None
        seed = int(torch.randint(1 << 62, (), generator=rng))
        sent = [name for name in group[0].sent.tensors if all(name in exchange.sent.tensors for exchange in group)]
        order = torch.randperm(len(public), generator=rng).to(public.labels.device)
        parts = [public.take(order[len(public) // HELD :]), public.take(order[: len(public) // HELD])]
        count = self.messages // min(examples, 4)
        counts = (count - count // HELD, count // HELD)
        known: list[KnownMessages] = []
        for part, many, varies in zip(parts, counts, (True, False), strict=True):
            chosen = (
                _vary(part, many * examples, rng) if varies else part.take(_draw_positions(part, many * examples, rng))
            )
            members = torch.arange(many * examples).view(many, examples)
            played = shadow_messages(view.task, moment, chosen, members, rng, defence)
            rows = torch.cat([Sketch(sent, seed)(messages) for messages in played])
            known.append(KnownMessages(rows, chosen.inputs.flatten(1)[members], chosen.labels[members]))
        means = class_means(public.inputs.flatten(1), public.labels, view.task.classes, 0.0)
        inverter = RidgeInverter(KnownMessages.join(known), means, held_out=counts[1])
        seen = {name: torch.stack([exchange.sent.tensors[name] for exchange in group]) for name in sent}
        inputs, labels = inverter.answer(Sketch(sent, seed)(seen), examples)
        inputs = inputs.view(*labels.shape, *shape)
        return inputs.clamp(0, 1) if len(shape) == 3 else inputs, labels


def _public(view: View) -> Batch:
    if view.auxiliary is None or len(view.auxiliary) < LEAST_PUBLIC:
        count = 0 if view.auxiliary is None else len(view.auxiliary)
        raise Refusal(
            f"learned_inverter needs at least {LEAST_PUBLIC} public examples. Got {count} instead; add `auxiliary` to "
            "`knows` in the threat model."
        )
    return view.auxiliary


def _draw_positions(pool: Batch, count: int, rng: Stream) -> Tensor:
    """Return positions in a pool, each as often as any other but for one time."""
    times = -(-count // len(pool))
    order = torch.cat([torch.randperm(len(pool), generator=rng) for _ in range(times)])
    return order[:count].to(pool.labels.device)


def _vary(pool: Batch, count: int, rng: Stream) -> Batch:
    """Return examples like those of a pool, half mixed with another of their class, half under a random label."""
    examples = pool.take(_draw_positions(pool, count, rng))
    inputs, labels = examples.inputs.clone(), examples.labels.clone()
    if inputs.dim() == 4:
        partners = torch.empty_like(labels)
        for label in torch.unique(labels):
            own = labels == label
            partners[own] = draw((pool.labels == label).nonzero()[:, 0].cpu(), int(own.sum()), rng).to(partners)
        weights = torch.rand(count, generator=rng) * (torch.rand(count, generator=rng) < 0.5)
        inputs = torch.lerp(inputs, pool.inputs[partners], weights.to(inputs).view(-1, 1, 1, 1))
    classes = torch.unique(pool.labels)
    others = classes[torch.randint(len(classes), (count,), generator=rng).to(classes.device)]
    return Batch(inputs, torch.where((torch.rand(count, generator=rng) < 0.5).to(labels.device), others, labels))
