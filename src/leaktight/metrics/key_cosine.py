"""Key cosine: how near an attacker's estimate of class keys comes to the true ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from leaktight.core.attack import Guess, GuessedSamples
from leaktight.core.metric import Direction, Metric, Reading
from leaktight.core.random import Stream
from leaktight.core.run import GroundTruth
from leaktight.core.task import Batch
from leaktight.defences.key_theory import largest_overlap


class KeyCosine(Metric):
    r"""The cosine between an estimated class key and the true key that it is nearest to in the end.

    With \(e_t\) the estimate on a turn t, and \(\psi_c^p\) the keys that the attacked parties have for the classes that
    they own,

    .. math:: \cos(e_T, \psi^*), \qquad \psi^* = \arg\max_{c, p} \cos(e_T, \psi_c^p),

    for the last turn T; `each` has it for the turns that were looked at, with the same key. An estimate has no say in
    whose class it brings out, so the nearest key counts, and the chance level is the median of the largest cosine of a
    random direction with as many keys in as many dimensions. An estimate along minus a key is of no use to a generator,
    so the sign counts. The interval is Fisher's for a correlation over d dimensions, as those of a random key are
    independent.

    A guess without estimates, and parties without keys, get no reading.

    Example:
        >>> print(KeyCosine())
        key_cosine

    Differs from the paper: Nobody estimates keys there.

    References:
        Sariyildiz, Cinbis and Ayday, Key Protected Classification for Collaborative Learning, 2020, section 4.3 (random
        keys).
    """

    kind: Literal["key_cosine"] = "key_cosine"
    title: ClassVar[str] = "cosine of estimated and true key"
    claim: ClassVar[str] = "samples"
    leaks: ClassVar[Direction] = "high"

    def grade(
        self, guess: Guess, truth: Sequence[GroundTruth], rng: Stream, public: Batch | None = None
    ) -> tuple[Reading, ...]:
        """Return one reading, or none."""
        if not isinstance(guess, GuessedSamples) or guess.estimates is None or not len(guess.estimates):
            return ()
        estimates = F.normalize(guess.estimates.detach().cpu().double(), dim=1)
        keys = _keys(truth, estimates.shape[1])
        if not len(keys):
            return ()
        cosines = estimates @ keys.T
        nearest = cosines[-1].argmax()
        value, dimensions = cosines[-1, nearest].item(), estimates.shape[1]
        low, high = fisher_interval(value, dimensions)
        return (
            Reading(
                name=self.kind,
                value=value,
                low=low,
                high=high,
                n=len(estimates),
                chance=largest_overlap(dimensions, pairs=len(keys)),
                leaks=self.leaks,
                each=tuple(cosines[:, nearest].tolist()),
            ),
        )


def _keys(truth: Sequence[GroundTruth], dimensions: int) -> Tensor:
    """Return the keys of so many dimensions that the attacked parties are to reveal, of length 1, one in each row."""
    keys = [
        key for ground_truth in truth for key in ground_truth.revealed.values() if tuple(key.shape) == (dimensions,)
    ]
    return F.normalize(torch.stack(keys).cpu().double(), dim=1) if keys else torch.zeros(0, dimensions)


def fisher_interval(cosine: float, dimensions: int) -> tuple[float, float]:
    """Return Fisher's 95 % interval of a correlation over so many dimensions.

    Example:
        >>> [round(end, 2) for end in fisher_interval(0.5, 103)]
        [0.34, 0.63]
    """
    middle, margin = math.atanh(min(max(cosine, -1 + 1e-12), 1 - 1e-12)), 1.96 / math.sqrt(max(1, dimensions - 3))
    return min(math.tanh(middle - margin), cosine), max(math.tanh(middle + margin), cosine)
