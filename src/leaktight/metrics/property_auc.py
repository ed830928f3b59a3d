"""Property AUC: how well an attack tells messages whose examples have a private property from the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Literal

import torch

from leaktight.core.attack import Guess, PropertyScores
from leaktight.core.errors import Refusal
from leaktight.core.metric import Direction, Metric, Quantity, Reading
from leaktight.core.random import Stream
from leaktight.core.run import GroundTruth
from leaktight.core.task import Batch
from leaktight.statistics.auc import auc, delong, delong_difference
from leaktight.statistics.interval import Interval, wilson

PROPERTY_AUC, BEHIND = "property_auc", "property_auc_behind"
"""The reading, and the one that compares a layer with that which tells most."""


class PropertyAuc(Metric):
    r"""The area under the ROC curve of an attack's probabilities over messages, for each attacked layer.

    A message has the property if any example behind it has. With \(\hat p_i\) the probabilities of the m messages with
    it and \(\hat q_j\) those of the n messages without,

    .. math:: AUC = \frac{1}{mn} \sum_{i,j} \left( [\hat p_i > \hat q_j] + \tfrac12 [\hat p_i = \hat q_j] \right).

    The chance level is 0.5. The interval is DeLong's: it holds for the messages as a sample, and not for another
    training run or other gradients of the attacker's own. At 0 and 1, where it has no width, it is Wilson's for as many
    trials as there are messages of the rarer kind. A reading without a layer is that of the whole message: of all
    layers together, or what the attack chose to make of them.

    `property_auc_behind` of a layer is how far its AUC lies below that of the layer with the largest, by DeLong's
    interval of the difference on the same messages, wider by Bonferroni's rule for as many layers as are compared. An
    interval above 0 shows that the layer tells less; that the largest was chosen on the same messages remains.

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
            BEHIND: Quantity("property AUC below the largest of a single layer", digits=2),
            "label_auc_behind": Quantity("label AUC below the largest of a single layer", digits=2),
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
            value, (low, high) = property_interval(scores, positive)
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
        return (*readings, *_behind(guess, positive))


def _behind(guess: PropertyScores, positive: torch.Tensor) -> Iterator[Reading]:
    """Yield how far each single layer lies behind the one that tells most."""
    single = {
        layer: scores
        for layer, scores in zip(guess.layers, guess.values, strict=True)
        if layer is not None and "+" not in layer
    }
    if len(single) < 2:
        return
    top = max(single, key=lambda layer: auc(single[layer], positive))
    for layer, scores in single.items():
        if layer == top:
            continue
        level = 1 - 0.05 / (len(single) - 1)
        value, (low, high) = delong_difference(single[top], scores, positive, level)
        yield Reading(name=BEHIND, value=value, low=low, high=high, n=len(positive), layer=layer, against="raw")


def property_interval(scores: torch.Tensor, positive: torch.Tensor) -> tuple[float, Interval]:
    """Return an AUC with its interval, which has a width even where no two messages are out of order.

    Example:
        >>> value, (low, high) = property_interval(torch.arange(8), torch.arange(8) > 3)
        >>> value, round(low, 2), high
        (1.0, 0.51, 1.0)
    """
    value, interval = delong(scores, positive)
    low, high = interval
    if low is None or high is None or low < high:
        return value, interval
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
