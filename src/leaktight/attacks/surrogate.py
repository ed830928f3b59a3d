"""Surrogate labels: a model and labels of the attacker's own are searched for whose gradients are those that came."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from leaktight.attacks.row_totals import RowTotals, row_numbers, worth_adding
from leaktight.core.attack import Attack, LabelScores, Principle, RowScores
from leaktight.core.errors import Refusal
from leaktight.core.message import Kind, Message
from leaktight.core.random import Stream, global_seed
from leaktight.core.threat import View

_START = 0.1


class Surrogate(Attack):
    r"""Search a top model and a label for each row that together give the received gradients, without any known label.

    With the activations \(a_i\) that the feature party sent, the rows \(\tilde g_i\) that came back, a surrogate top
    model h and surrogate labels \(\hat y_i = \sigma(\theta_i)\), it minimises over h and \(\theta\), for the messages
    of one pass together,

    .. math:: 1 - \frac{\sum_i \langle \tilde g_i, g_i \rangle}{\sqrt{\sum_i \|\tilde g_i\|^2 \sum_i \|g_i\|^2}}
        + \beta \, \Big( H(\bar y) - \overline{H(\hat y_i)} - m \Big)^2,
        \qquad g_i = \nabla_{a_i} L(h(a_i), \hat y_i) .

    The second term keeps labels apart from each other: H is the entropy, \(\bar y\) their mean, and m what labels that
    are sure and as rare as `share` says would have. The next pass starts from the same top model, with new labels;
    \(\theta_i\) is the score of row i, and passes are added up (see `RowTotals`). Which side is positive stays unknown.

    The surrogate sees activations too, and learns from them what the features tell. The baseline and chance level is
    therefore the same search on messages whose rows were dealt out by chance.

    Args:
        hidden: the width of the surrogate's only hidden layer, at least 1; wider fits more.
        iterations: steps of Adam for each pass, at least 1; more is stronger, up to a point.
        learning_rate: of these steps.
        share: the share of positives that is expected, in (0, 1).
        weight: \(\beta\).

    Example:
        >>> Surrogate().principle
        'search'

    Differs from the paper: The cosine in place of the distance of gradients, as the surrogate's loss has a scale of its
    own; one search for each pass, as the label party's model does not stand still; regularisers on the mean and the
    sureness of labels in one term; settings are not tuned by a search.

    References:
        Kariyappa and Qureshi, ExPLoit: Extracting Private Labels in Split Learning, SaTML 2023.
    """

    kind: Literal["surrogate"] = "surrogate"
    claims: ClassVar[frozenset[str]] = frozenset({"scores"})
    goals: ClassVar[tuple[str, ...]] = ("tell examples apart",)
    principle: ClassVar[Principle] = "search"
    hidden: int = Field(16, ge=1)
    iterations: int = Field(50, ge=1)
    learning_rate: float = Field(0.05, gt=0)
    share: float = Field(0.25, gt=0, lt=1)
    weight: float = Field(0.1, ge=0)

    def run(self, view: View, rng: Stream) -> LabelScores:
        """Search surrogate labels pass by pass, for the messages and for messages with shuffled rows."""
        gradients = [m for m in view.of(Kind.CUT_GRADIENT) if m.sender != view.seat and m.tensors]
        sent = {message.round: message for message in view.of(Kind.ACTIVATION)}
        if not gradients or not all(message.round in sent for message in gradients):
            raise Refusal(
                f"{self.kind} needs cut gradients of somebody else and the activations that they answer. The view from "
                f"`{view.seat}` has not."
            )
        if view.task.classes != 2:
            raise Refusal(f"{self.kind} tells two classes apart. Got {view.task.classes} classes instead.")
        numbers = row_numbers(view, gradients)
        passes = numbers[1] if numbers is not None else tuple(0 for _ in gradients)
        exchanges = [_Exchange.of(sent[message.round], message) for message in gradients]
        dealt = [exchange.deal(rng) for exchange in exchanges]
        seed = int(torch.randint(2**31, (1,), generator=rng))
        scores, blind = (self._search(each, passes, seed) for each in (exchanges, dealt))
        rows = None
        if numbers is not None and worth_adding(*numbers, layers=1):
            sides = (scores, exchanges), (blind, dealt)
            values, baseline = (_totals(side, side_exchanges, *numbers) for side, side_exchanges in sides)
            rows = RowScores(numbers[0], values, baseline)
        # Activations have a part in every score, so it is judged as the layers before the cut are.
        layer = [name for name, _ in view.task.model.body.named_children()][-1:] or ["bottom"]
        every, others = (tuple(values[None] for values in side) for side in (scores, blind))
        return LabelScores(tuple(message.key for message in gradients), every, tuple(layer), False, others, rows)

    def _search(self, exchanges: Sequence[_Exchange], passes: Sequence[int], seed: int) -> list[Tensor]:
        """Return the scores of each message's rows."""
        width = exchanges[0].activations.shape[1]
        with global_seed(seed):
            top = nn.Sequential(nn.Linear(width, self.hidden), nn.Tanh(), nn.Linear(self.hidden, 1))
        scores: dict[int, Tensor] = {}
        for number in sorted(set(passes)):
            places = [place for place, own in enumerate(passes) if own == number]
            own_scores = self._match(top, [exchanges[place] for place in places], seed + number)
            scores |= dict(zip(places, own_scores, strict=True))
        return [scores[place] for place in range(len(exchanges))]

    def _match(self, top: nn.Module, exchanges: Sequence[_Exchange], seed: int) -> list[Tensor]:
        activations = torch.cat([exchange.activations for exchange in exchanges])
        gradients = torch.cat([exchange.gradients for exchange in exchanges])
        generator = torch.Generator().manual_seed(seed)
        logits = (_START * torch.randn(len(activations), generator=generator)).requires_grad_(True)
        adam = torch.optim.Adam([logits, *top.parameters()], lr=self.learning_rate)
        wanted = _entropy(torch.tensor(self.share))
        for _ in range(self.iterations):
            adam.zero_grad()
            labels = torch.sigmoid(logits)
            leaf = activations.detach().requires_grad_(True)
            loss = nn.functional.binary_cross_entropy_with_logits(top(leaf)[:, 0], labels, reduction="sum")
            [gradient] = torch.autograd.grad(loss, leaf, create_graph=True)
            likeness = nn.functional.cosine_similarity(gradient.flatten(), gradients.flatten(), dim=0)
            apart = _entropy(labels.mean()) - _entropy(labels).mean()
            torch.autograd.backward(1 - likeness + self.weight * (apart - wanted).square())
            adam.step()
        return list(torch.split(logits.detach().double(), [len(exchange.activations) for exchange in exchanges]))


@dataclasses.dataclass(frozen=True)
class _Exchange:
    """The activations of a step and the gradient that came back, by example; a message's rows have mean length 1."""

    activations: Tensor
    gradients: Tensor

    @classmethod
    def of(cls, sent: Message, came: Message) -> _Exchange:
        [activations], [gradients] = sent.tensors.values(), came.tensors.values()
        rows = gradients.flatten(1).double().cpu()
        size = rows.norm(dim=1).mean().clamp_min(1e-150)
        return cls(activations.flatten(1).float().cpu(), (rows / size).float())

    def deal(self, rng: Stream) -> _Exchange:
        """Return the same with the gradients dealt out to other examples by chance."""
        return _Exchange(self.activations, self.gradients[torch.randperm(len(self.gradients), generator=rng)])


def _totals(
    scores: Sequence[Tensor], exchanges: Sequence[_Exchange], rows: Sequence[Tensor], passes: Sequence[int]
) -> Tensor:
    """Return what each pass says of each row, in one sign."""
    count = 1 + max(int(own.max()) for own in rows)
    totals = RowTotals(1, sorted(set(passes)), count, turns=True)
    for values, exchange, own, number in zip(scores, exchanges, rows, passes, strict=True):
        totals.add(0, number, own, values, exchange.gradients)
    return totals.finish(torch.zeros(count, dtype=torch.bool))


def _entropy(share: Tensor) -> Tensor:
    sure = share.clamp(1e-6, 1 - 1e-6)
    return -(sure * sure.log() + (1 - sure) * (1 - sure).log())
