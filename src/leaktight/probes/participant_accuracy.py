"""Participant accuracy: how good each participant's own model is on the classes that it owns."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean
from typing import Literal

import torch

from leaktight.core.errors import Refusal
from leaktight.core.message import Kind, Message, Tensors
from leaktight.core.metric import Quantity, Reading
from leaktight.core.probe import Finding, Probe
from leaktight.core.random import Stream
from leaktight.core.run import GroundTruth, Run
from leaktight.core.task import Batch
from leaktight.learning.evaluate import utility

NAME = "participant_accuracy"


class ParticipantAccuracy(Probe):
    r"""The mean over participants of how many test examples of their own classes they classify, after a turn of theirs.

    A participant's model is what it was handed with its own update added, under a private head or private keys of its
    own, and it chooses among whatever it can score: under class keys, before they are revealed, among the classes that
    it owns. The joint model's accuracy on all classes is the training run's own reading. `each` has the accuracy of
    each participant; the ends of the interval are the means of theirs.

    Example:
        >>> print(ParticipantAccuracy())
        participant_accuracy

    References:
        Sariyildiz, Cinbis and Ayday, Key Protected Classification for Collaborative Learning, 2020, Figure 3 (mean
        participant accuracy).
    """

    kind: Literal["participant_accuracy"] = "participant_accuracy"

    @classmethod
    def quantities(cls) -> Mapping[str, Quantity]:
        """Return the mean accuracy."""
        return {NAME: Quantity("mean accuracy of participants", "%", digits=1)}

    def read(self, run: Run, rng: Stream) -> Finding:
        """Classify the test examples of each participant's classes by its own model."""
        if run.auxiliary is None or not run.truths:
            raise Refusal(f"{self.kind} needs test examples and participants who are honest. There are none.")
        asked = {(message.receiver, message.round): message for message in run.transcript if message.kind is _ASKED}
        first: dict[str, GroundTruth] = {}
        for _, truth in sorted(run.truths.items()):
            first.setdefault(truth.sent.sender, truth)
        each = [_accuracy(truth, asked[truth.sent.sender, truth.sent.round], run.auxiliary) for truth in first.values()]
        known = [reading for reading in each if reading is not None]
        if not known:
            raise Refusal(f"{self.kind} needs test examples of the participants' classes. There are none.")
        value, ends = fmean(r.value for r in known), [(r.low, r.high) for r in known]
        lows, highs = ([end for end in side if end is not None] for side in zip(*ends, strict=True))
        return Finding(
            readings=(
                Reading(
                    name=NAME,
                    value=value,
                    low=fmean(lows),
                    high=fmean(highs),
                    n=sum(reading.n for reading in known),
                    each=tuple(reading.value for reading in known),
                ),
            )
        )


_ASKED = Kind.PARAMETERS


def _accuracy(truth: GroundTruth, asked: Message, test: Batch) -> Reading | None:
    """Return a participant's accuracy; None if no test example is of a class of its own."""
    owned = truth.raw if truth.owned is None else truth.owned
    mine = torch.isin(test.labels, owned.labels.to(test.labels.device)).nonzero()[:, 0]
    if not len(mine):
        return None
    return utility(truth.task, _own_model(truth, asked), test.take(mine))[0]


def _own_model(truth: GroundTruth, asked: Message) -> Tensors:
    """Return the parameters of the participant's model after its turn."""
    start = truth.task.model_parameters(asked.tensors, truth.private)
    if truth.clean.kind is not Kind.UPDATE:
        return start
    sent = truth.clean.tensors
    return {
        name: tensor + sent[wire] if (wire := truth.task.wire(name)) is not None and wire in sent else tensor
        for name, tensor in start.items()
    }
