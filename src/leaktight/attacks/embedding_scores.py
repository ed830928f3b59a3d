"""Embedding scores: the base of attacks that tell positives from negatives by the feature party's own activations."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal, final

import torch
from torch import Tensor
from torch.func import functional_call

from leaktight.attacks.row_totals import row_numbers
from leaktight.core.attack import Attack, LabelScores, RowScores
from leaktight.core.errors import Refusal
from leaktight.core.message import Kind, Message
from leaktight.core.random import Stream
from leaktight.core.threat import Knows, View


class EmbeddingAttack(Attack):
    """Scores each row by the activations that the feature party's own bottom model makes of it.

    The gradients that a feature party receives shape its bottom model until its outputs tell the classes apart,
    whatever noise is on each of them. So labels are read off the activations of a step, which nobody has to send.

    Features reveal labels by themselves. What the same attack reaches with the bottom's initial parameters, which no
    gradient has changed, is no leak: it is the features-only baseline, and the chance level.

    Write `score`. After each pass the rows are scored anew by the parameters of its last step; the last word counts,
    nothing is added up.

    Args:
        bottom: `trained`, by the parameters of each step; `initial`, by those before the first, which must find no more
            than the features tell.
    """

    claims: ClassVar[frozenset[str]] = frozenset({"scores"})
    goals: ClassVar[tuple[str, ...]] = ("tell examples apart",)
    bottom: Literal["trained", "initial"] = "trained"

    @property
    def signed(self) -> bool:
        """Whether a larger score means likelier positive."""
        return True

    @abc.abstractmethod
    def score(self, embeddings: Tensor, known: Tensor, labels: Tensor) -> Tensor:
        """Return one score for each row of activations.

        Args:
            embeddings: one row for each example, flat.
            known: the positions of those whose label is known.
            labels: these labels, 0 or 1.
        """

    @property
    def labels_used(self) -> int:
        """How many known labels are used at most; none unless it needs hints."""
        return 0

    @final
    def run(self, view: View, rng: Stream) -> LabelScores:
        """Score the rows behind every cut gradient that somebody else sent."""
        messages = [
            message for message in view.of(Kind.CUT_GRADIENT) if message.sender != view.seat and message.tensors
        ]
        numbers = row_numbers(view, messages)
        if numbers is None or "initial" not in view.memory:
            raise Refusal(
                f"{self.kind} needs the bottom model and its rows, which the feature party alone has. The seat is "
                f"`{view.seat}`."
            )
        if view.task.classes != 2:
            raise Refusal(f"{self.kind} tells two classes apart. Got {view.task.classes} classes instead.")
        table = _Table.of(view, messages, *numbers)
        known, labels = self._known_labels(view, messages, numbers[0])
        layer = [name for name, _ in view.task.model.body.named_children()][-1:]
        trained, initial = self._score(table, known, labels, self.bottom), self._score(table, known, labels, "initial")
        return LabelScores(
            tuple(message.key for message in messages),
            trained[0],
            tuple(layer) or ("bottom",),
            self.signed,
            initial[0],
            RowScores(numbers[0], trained[1], initial[1], adds=False),
        )

    def _score(self, table: _Table, known: Tensor, labels: Tensor, bottom: str) -> tuple[tuple[Tensor, ...], Tensor]:
        """Return the scores of each message's rows at its own step, and of all rows after each pass."""
        each = []
        for place, rows in enumerate(table.rows):
            # Known rows have activations in every step.
            indices = torch.cat([rows, known])
            positions = torch.arange(len(rows), len(indices))
            scores = self.score(table.embed(indices, place, bottom), positions, labels)[: len(rows)]
            scores[torch.isin(rows, known)] = torch.nan
            each.append(scores.double()[None])
        count = len(table.inputs)
        values = torch.full((1, len(table.last), count), torch.nan, dtype=torch.float64)
        places = torch.full((count,), -1)
        places[table.seen] = torch.arange(len(table.seen))
        for number, place in enumerate(table.last.values()):
            values[0, number, table.seen] = self.score(
                table.embed(table.seen, place, bottom), places[known], labels
            ).double()
        values[:, :, known] = torch.nan
        return tuple(each), values

    def _known_labels(self, view: View, messages: Sequence[Message], rows: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        """Return the rows whose labels are known and used, and these labels, from the first messages on."""
        labels: dict[int, int] = {}
        if Knows.HINTS in self.needs:
            for message, own in zip(messages, rows, strict=True):
                hints = view.hints[message.key]
                order = [at for pair in zip(hints.of(1).tolist(), hints.of(0).tolist(), strict=False) for at in pair]
                by_position = dict(zip(hints.positions.tolist(), hints.labels.tolist(), strict=True))
                labels |= {int(own[at]): by_position[at] for at in order}
                if len(labels) >= self.labels_used:
                    break
            if len(set(labels.values())) < 2:
                raise Refusal(f"{self.kind} needs known examples of both classes. The hints of this view have not.")
        chosen = dict(list(labels.items())[: self.labels_used])
        return torch.tensor(list(chosen), dtype=torch.long), torch.tensor(list(chosen.values()), dtype=torch.long)


@dataclasses.dataclass(frozen=True)
class _Table:
    """The feature party's rows as far as they were seen, and its parameters at each message."""

    view: View
    inputs: Tensor
    seen: Tensor
    rows: tuple[Tensor, ...]
    parameters: tuple[Mapping[str, Tensor], ...]
    last: Mapping[int, int]

    @classmethod
    def of(cls, view: View, messages: Sequence[Message], rows: tuple[Tensor, ...], passes: tuple[int, ...]) -> _Table:
        steps = [view.memory["seen"][str(message.round)] for message in messages]
        count = 1 + max(int(own.max()) for own in rows)
        inputs = steps[0]["inputs"].new_zeros((count, *steps[0]["inputs"].shape[1:]))
        for own, step in zip(rows, steps, strict=True):
            inputs[own.to(inputs.device)] = step["inputs"]
        last = {number: place for place, number in enumerate(passes)}
        return cls(view, inputs, torch.unique(torch.cat(rows)), rows, tuple(step["parameters"] for step in steps), last)

    def embed(self, rows: Tensor, place: int, bottom: str) -> Tensor:
        """Return the activations of some rows by the parameters at one message, or by the initial ones."""
        parameters = self.view.memory["initial"] if bottom == "initial" else self.parameters[place]
        with torch.no_grad():
            activations: Tensor = functional_call(
                self.view.task.model.body, dict(parameters), (self.inputs[rows.to(self.inputs.device)],)
            )
        return activations.flatten(1).cpu()
