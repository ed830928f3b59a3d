"""Property AUC: how well an attack tells messages whose examples have a private property from the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

import torch

from leaktight.core.attack import Guess, PropertyScores
from leaktight.core.errors import Refusal
from leaktight.core.metric import Direction, Metric, Quantity, Reading
from leaktight.core.random import Stream
from leaktight.core.run import GroundTruth
from leaktight.core.task import Batch
from leaktight.statistics.auc import delong
from leaktight.statistics.interval import Interval, wilson


class PropertyAuc(Metric):
    r"""The area under the ROC curve of an attack's probabilities over messages, for each attacked layer.

    A message has the property if any example behind it has. With \(\hat p_i\) the probabilities of the m messages with
    it and \(\hat q_j\) those of the n messages without,

    .. math:: AUC = \frac{1}{mn} \sum_{i,j} \left( [\hat p_i > \hat q_j] + \tfrac12 [\hat p_i = \hat q_j] \right).

    The chance level is 0.5. The interval is DeLong's: it holds for the messages as a sample, and not for another
    training run or other gradients of the attacker's own. At 0 and 1, where it has no width, it is Wilson's for as many
    trials as there are messages of the rarer kind. A reading without a layer is that of all layers together.

    Example:
        >>> PropertyAuc().leaks, PropertyAuc.claim
        ('high', 'property')

    Differs from the paper: It repeats each attack 20 times and shows the interval over repetitions.

    References:
        Mo et al., Layer-wise Characterization of Latent Information Leakage in Federated Learning, 2021, section 5 and
        Fig. 3.
    """

    kind: Literal["property_auc"] = "property_auc"
    claim: ClassVar[str] = "property"
    leaks: ClassVar[Direction] = "high"

    @classmethod
    def quantities(cls) -> Mapping[str, Quantity]:
        """Return what it reads.

        A report calls it `label_auc` where a class stands in the place of the property.
        """
        return {
            "property_auc": Quantity("property AUC", digits=2, leaks="high"),
            "label_auc": Quantity("label AUC", digits=2, leaks="high"),
        }

    def grade(
        self, guess: Guess, truth: Sequence[GroundTruth], rng: Stream, public: Batch | None = None
    ) -> tuple[Reading, ...]:
        """Return one reading for each layer; nothing for a guess that does not speak of a property."""
        if not isinstance(guess, PropertyScores) or not truth:
            return ()
        positive = has_property(truth)
        if positive.all() or not positive.any():
            raise Refusal(
                f"{self.kind} needs messages with the property and without. {'All' if positive.any() else 'None'} of "
                f"{len(truth)} has it; observe more of them, or let participants train by the schedule `by_property`."
            )
        readings = []
        for layer, scores in zip(guess.layers, guess.values, strict=True):
            value, (low, high) = _with_width(delong(scores, positive), positive)
            readings.append(
                Reading(
                    name=self.kind,
                    value=value,
                    low=low,
                    high=high,
                    n=len(truth),
                    chance=0.5,
                    leaks=self.leaks,
                    against="raw",
                    layer=layer,
                )
            )
        return tuple(readings)


def _with_width(measured: tuple[float, Interval], positive: torch.Tensor) -> tuple[float, Interval]:
    """Return an AUC with its interval, which has a width even where no two messages are out of order."""
    value, (low, high) = measured
    if low is None or high is None or low < high:
        return measured
    rarer = min(int(positive.sum()), int((~positive).sum()))
    return value, wilson(value * rarer, rarer)


def has_property(truth: Sequence[GroundTruth]) -> torch.Tensor:
    """Return for each message whether any example behind it has the property.

    Raises:
        Refusal: the examples have no property.
    """
    has = []
    for ground_truth in truth:
        if ground_truth.raw.properties is None:
            raise Refusal(
                "Whether messages hold a private property is unknown. The data has none; set `private_property` of "
                "the data."
            )
        has.append(bool((ground_truth.raw.properties == 1).any()))
    return torch.tensor(has)
