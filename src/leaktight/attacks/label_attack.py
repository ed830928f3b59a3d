"""Label attacks: the base of attacks that tell positives from negatives by cut gradients, layer by layer."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Iterable
from typing import ClassVar, final

import torch
from torch import Tensor

from leaktight.attacks.row_totals import RowTotals, row_numbers, worth_adding
from leaktight.core.attack import Attack, LabelScores, Principle, RowScores
from leaktight.core.errors import Refusal, did_you_mean
from leaktight.core.message import Kind, Message
from leaktight.core.random import Stream
from leaktight.core.threat import Hints, Knows, View
from leaktight.learning.layer_gradient import layer_gradients

CUT, FIRST, ALL = "cut", "first", "all"
_SAFE = 1e-10, 1e15
_NONE = Hints(torch.empty(0, dtype=torch.long), torch.empty(0, dtype=torch.long))


class LabelAttack(Attack):
    """Scores each example behind every cut gradient that was received, at one layer or at all of them.

    Write `score`. The rows it gets are those of one step at one layer, flattened; tiny or huge ones are scaled first,
    so that no square of them vanishes, and no score may rest on the scale of a batch. The gradient at a layer before
    the cut is what the feature party's own backward pass makes of the one it received, so only its own seat has it; the
    cut gradient is also seen on the wire. An example whose label was hinted and used is not scored.

    A row at a layer before the cut depends on the feature party's own inputs too, through the slopes of the layers in
    between, and they may reveal the label by themselves. So the attack also scores the message's own rows there, dealt
    out to the examples by chance: what that reaches is no leak of the message, and the chance level of such a layer.

    The feature party knows which of its rows is where in each message. So from its seat the scores of a row in several
    messages are also added up (see `RowTotals`), pass by pass, beside those of rows that were dealt out by chance. A
    row whose label was used is left out everywhere.
    """

    claims: ClassVar[frozenset[str]] = frozenset({"scores"})
    goals: ClassVar[tuple[str, ...]] = ("tell examples apart",)
    principle: ClassVar[Principle] = "statistic"
    simple: ClassVar[bool] = True
    layer: str = CUT

    @property
    def signed(self) -> bool:
        """Whether a larger score means likelier positive; else it may as well mean the opposite."""
        return True

    @property
    def steady(self) -> bool:
        """Whether the scores of all messages have one sign, known or not; else it is fixed by continuity."""
        return False

    @abc.abstractmethod
    def score(self, rows: Tensor, hints: Hints) -> Tensor | None:
        """Return one score for each row; None if the hints are too few for any."""

    def used_positions(self, hints: Hints) -> Tensor:
        """Return the positions of hinted examples that are used, so not scored: all, if the attack needs hints."""
        return hints.positions if Knows.HINTS in self.needs else hints.positions[:0]

    @final
    def run(self, view: View, rng: Stream) -> LabelScores:
        """Score the rows of every cut gradient that somebody else sent."""
        messages = cut_gradients(view, self.kind)
        own, seen = tuple(message.key for message in messages), row_numbers(view, messages)
        count = 1 if self.layer != ALL else 1 + len(list(view.task.model.body.named_children()))
        totals = None if seen is None else _Totals.of(*seen, count, turns=not self.steady)
        layers: tuple[str | None, ...] = ()
        scores, blind = [], []
        for place, message in enumerate(messages):
            [cut] = message.tensors.values()
            hints = view.hints.get(message.key, _NONE)
            gradients = layers_of(view, message.round, cut, self.layer)
            layers = tuple(gradients)
            scores.append(self._score_layers(gradients.values(), hints))
            if self.layer == CUT and totals is None:
                continue
            dealt = cut[torch.randperm(len(cut), generator=rng).to(cut.device)]
            shuffled = layers_of(view, message.round, dealt, self.layer)
            blind.append(self._score_layers(shuffled.values(), hints))
            if totals is not None:
                totals.add(
                    place, scores[-1], gradients.values(), blind[-1], shuffled.values(), self.used_positions(hints)
                )
        passes = None if totals is None else totals.finish()
        return LabelScores(own, tuple(scores), layers, self.signed, tuple(blind) if self.layer != CUT else (), passes)

    def _score_layers(self, layers: Iterable[Tensor], hints: Hints) -> Tensor:
        scores = []
        for rows in layers:
            values = self.score(_rescale(rows.flatten(1)), hints)
            if values is None:
                scores.append(rows.new_full((len(rows),), torch.nan, dtype=torch.float64))
                continue
            # What has no score would drop out of the measure unseen.
            scored = values.double().index_fill(0, self.used_positions(hints).to(values.device), 0.0)
            unscored = int(torch.isnan(scored).sum())
            if unscored:
                raise Refusal(
                    f"{self.kind} must score every example but those it was told. {unscored} of {len(rows)} scores "
                    "are NaN."
                )
            scores.append(scored)
        table = torch.stack(scores)
        table[:, self.used_positions(hints)] = torch.nan
        return table


@dataclasses.dataclass
class _Totals:
    """The totals of an attack's scores and of those of rows dealt out by chance, and whose labels were used."""

    rows: tuple[Tensor, ...]
    passes: tuple[int, ...]
    turns: bool
    known: Tensor

    @classmethod
    def of(cls, rows: tuple[Tensor, ...], passes: tuple[int, ...], layers: int, *, turns: bool) -> _Totals | None:
        """Return the totals of no message yet; None where nothing can be added up."""
        if not worth_adding(rows, passes, layers):
            return None
        count = 1 + max(int(own.max()) for own in rows)
        return cls(rows, passes, turns, torch.zeros(count, dtype=torch.bool))

    def __post_init__(self) -> None:
        self._sides: tuple[RowTotals, RowTotals] | None = None

    def add(
        self, place: int, scores: Tensor, rows: Iterable[Tensor], blind: Tensor, dealt: Iterable[Tensor], used: Tensor
    ) -> None:
        if self._sides is None:
            seen = sorted(set(self.passes))
            one, other = (RowTotals(len(scores), seen, len(self.known), self.turns) for _ in range(2))
            self._sides = one, other
        index, number = self.rows[place], self.passes[place]
        self.known[index[used.cpu()]] = True
        for side, values, layers in zip(self._sides, (scores, blind), (rows, dealt), strict=True):
            for layer, gradients in enumerate(layers):
                side.add(layer, number, index, values[layer], _rescale(gradients.flatten(1)))

    def finish(self) -> RowScores | None:
        if self._sides is None:
            return None
        values, blind = (side.finish(self.known) for side in self._sides)
        return RowScores(self.rows, values, blind)


def cut_gradients(view: View, kind: str) -> list[Message]:
    """Return the cut gradients that somebody else sent.

    Args:
        view: what the attacker has.
        kind: the attack that tells labels from them.

    Raises:
        Refusal: there are none, or there are not two classes to tell apart.
    """
    messages = [message for message in view.of(Kind.CUT_GRADIENT) if message.sender != view.seat and message.tensors]
    if not messages:
        raise Refusal(
            f"{kind} needs cut gradients of somebody else. The view from `{view.seat}` holds none; "
            "sit down as the feature party of split learning."
        )
    if view.task.classes != 2:
        raise Refusal(f"{kind} tells two classes apart. Got {view.task.classes} classes instead.")
    return messages


def layers_of(view: View, step: int, cut: Tensor, wanted: str) -> dict[str | None, Tensor]:
    """Return the gradient of each example of a step at the wanted layers, by name; that at the cut has the name None.

    Args:
        view: what the attacker has.
        step: which step.
        cut: the gradient at the cut that goes back from there, a row for each example.
        wanted: `cut`, the message itself; `first`, the first layer of the bottom that learns; `all`, the cut and then
            every layer from the first on; or a layer's name.

    Raises:
        Refusal: the seat has no bottom model, or the bottom no such layer.
    """
    if wanted == CUT:
        return {None: cut}
    seen = view.memory.get("seen", {}).get(str(step))
    if seen is None:
        raise Refusal(
            f"The layer `{wanted}` is known to the feature party alone, which has the model before the cut. The seat "
            f"is `{view.seat}`."
        )
    named = layer_gradients(view.task.model.body, seen["parameters"], seen["inputs"], cut)
    last = list(named)[-1]
    before: dict[str | None, Tensor] = {name: rows for name, rows in named.items() if name != last}
    if wanted == ALL:
        return {None: cut, **before}
    name = next(iter(named)) if wanted == FIRST else wanted
    if name not in named:
        raise Refusal(f"There is no layer `{wanted}` before the cut. {did_you_mean(wanted, [CUT, FIRST, ALL, *named])}")
    return {None if name == last else name: named[name]}


def cosines(rows: Tensor, way: Tensor) -> Tensor:
    """Return the inner product of each row's direction with a vector; a row of zeros has none and gets 0.

    Example:
        >>> cosines(torch.tensor([[3.0, 4.0], [0.0, 0.0]]), torch.tensor([0.0, 1.0])).tolist()
        [0.800000011920929, 0.0]
    """
    # Rows are not made unit rows first: the copy would take twenty times as long as both sums.
    cosine: Tensor = (rows @ way) / rows.norm(dim=1).clamp_min(torch.finfo(rows.dtype).tiny)
    return cosine


def mean_direction(rows: Tensor) -> Tensor:
    """Return the mean of the rows' directions.

    Example:
        >>> mean_direction(torch.tensor([[5.0, 0.0], [0.0, 2.0]])).tolist()
        [0.5, 0.5]
    """
    return torch.nn.functional.normalize(rows, dim=1, eps=torch.finfo(rows.dtype).tiny).mean(0)


def _rescale(rows: Tensor) -> Tensor:
    """Return rows whose squares neither vanish nor overflow; a copy only where they would."""
    if not rows.numel():
        return rows
    least, most = (float(end) for end in rows.aminmax())
    largest = max(-least, most)
    return rows if largest == 0 or _SAFE[0] < largest < _SAFE[1] else rows.double() / largest
