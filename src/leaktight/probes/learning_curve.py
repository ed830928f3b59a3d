"""The learning curve: how good the model was at some moments of its training run."""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import Field

from leaktight.core.errors import Refusal
from leaktight.core.message import Kind
from leaktight.core.metric import Reading
from leaktight.core.probe import Finding, Probe
from leaktight.core.random import Stream
from leaktight.core.run import Run
from leaktight.core.task import Batch
from leaktight.learning.evaluate import mean_loss, utility
from leaktight.probes.public import public_examples


class LearningCurve(Probe):
    """Evaluate the parameters before each round of a run; at the stage `training`, throughout the training run.

    Readings are `accuracy_after_10` and `loss_after_10` and so on, on public examples, and `own_accuracy_after_10` and
    `own_loss_after_10`, on what the participants own, as they hold it: the number is that of the rounds before.
    Intervals are Wilson's for accuracies and Student's for losses.

    Args:
        examples: on how many public examples, and how many of the participants' own, at least 1; more gives narrower
            intervals.

    Example:
        >>> from leaktight.core.random import stream
        >>> from leaktight.testing import toy_run
        >>> found = LearningCurve(examples=20).read(toy_run(rounds=2), stream(0, "curve")).readings
        >>> [reading.name for reading in found][:4]
        ['accuracy_after_0', 'loss_after_0', 'own_accuracy_after_0', 'own_loss_after_0']
        >>> [reading.name for reading in found][4:]
        ['accuracy_after_1', 'loss_after_1', 'own_accuracy_after_1', 'own_loss_after_1']

    Differs from the paper: Fig. 3 evaluates on the transformed training images too; here the participants' images are
    as they were.

    References:
        Gao et al., "Privacy-preserving Collaborative Learning with Automatic Transformation Search", 2021, Fig. 3.
    """

    kind: Literal["learning_curve"] = "learning_curve"
    examples: int = Field(1000, ge=1)

    def read(self, run: Run, rng: Stream) -> Finding:
        """Evaluate every model that a message of the run answers."""
        public = public_examples(run, self.kind, self.examples, rng)
        own = _own_examples(run, self.examples, rng)
        handed = {
            message.round: message.tensors
            for message in run.transcript
            if message.kind is Kind.PARAMETERS and (message.receiver, message.round) in run.truths
        }
        if not handed:
            raise Refusal(f"{self.kind} needs a message that answers the parameters of a model. The run holds none.")
        readings: list[Reading] = []
        for played, tensors in sorted(handed.items()):
            parameters = run.public.model_state(tensors)
            for whose, batch in (("", public), ("own_", own)):
                [accuracy] = utility(run.public, parameters, batch)
                readings += [
                    reading.model_copy(update={"name": f"{whose}{reading.name}_after_{played}"})
                    for reading in (accuracy, mean_loss(run.public, parameters, batch))
                ]
        return Finding(tuple(readings))


def _own_examples(run: Run, count: int, rng: Stream) -> Batch:
    """Return at most so many examples that senders own, or, where that is unknown, that they sent messages about."""
    parts: dict[object, Batch] = {}
    for key, ground_truth in run.truths.items():
        # What a sender owns is the same behind each of its messages.
        parts |= {key: ground_truth.raw} if ground_truth.owned is None else {key[0]: ground_truth.owned}
    joined = Batch.join(list(parts.values()))
    return joined.take(torch.randperm(len(joined), generator=rng)[:count].to(joined.labels.device))
