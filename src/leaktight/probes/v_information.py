"""V-information: how much of a private property attackers of several kinds can use, layer by layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor

from leaktight.attacks.property_classifier import Single
from leaktight.attacks.property_inference import PropertyInference
from leaktight.core.attack import PropertyScores
from leaktight.core.errors import Refusal
from leaktight.core.metric import Quantity, Reading
from leaktight.core.probe import Finding, Probe
from leaktight.core.random import Stream, stream
from leaktight.core.run import Run
from leaktight.core.threat import Knows, ThreatModel
from leaktight.metrics.property_auc import has_property
from leaktight.metrics.v_information import MOST, balanced_mean, best_of, gains, t_interval


class VInformation(Probe):
    r"""Measure how much of a private property an attacker can use, in each layer and in all together.

    A property inference attack is fitted to gradients of the attacker's own and asked about the run's messages, once
    for each predictive family V and repeat. With \(f[g_i]\) its answer to message i and \(p_i\) whether any example
    behind it has the property,

    .. math:: \hat I_V(G_l \to P) = \log 2
        + \frac12 \sum_{p \in \{0, 1\}} \frac{1}{n_p} \sum_{i: p_i = p} \log f[g_{l,i}](p_i)

    in nats: as \(f[\emptyset] = 1/2\), messages with and without the property count for a half each. The most is
    \(\log 2\); 0 is what the attacker knows without the message, and a family is below that if it is sure of what is
    not so. Readings are `v_information_random_forest` and so on, one for each family, and `v_information` of their
    union, to which saying a half to everything belongs: half of the messages choose the family by which the others are
    judged, and the other way round, so that it is no better for having been chosen. Each comes as a share of \(\log 2\)
    too, `v_information_share`. A reading without a layer is that of all layers together.

    Each repeat has gradients and seeds of its own. The interval is Student's over repeats: it holds for other attackers
    on these messages, and not for other messages or another training run.

    Args:
        families: which predictive families; more find more and take longer.
        repeats: how often to repeat, at least 1; without a second there is no interval.
        gradients: how many gradients the attacker learns from, at least 20; more is stronger and slower.
        entries: the attacker learns from so many entries of each layer, drawn once for each repeat, instead of pooled
            features; None for those.
        models_defence: whether the attacker's own gradients go through the known defence; stronger, and needs `defence`
            in `knows`.
        threat: where the attacker sits and what it knows: public examples at least.

    Example:
        >>> from leaktight.core.random import stream
        >>> from leaktight.testing import property_run
        >>> probe = VInformation(families=("logistic",), repeats=2, gradients=80)
        >>> found = probe.read(property_run(), stream(0, "v-information")).readings
        >>> [(reading.name, reading.layer) for reading in found][:3]
        [('v_information_logistic', None), ('v_information_logistic', 'body.1'), ('v_information_logistic', 'head')]

    Differs from the paper: f is measured on messages that it was not fitted to, and its forest answers by votes,
    without a softmax, which would leave at most 0.38 nats. `logistic` is ours. Repeats fit anew to the same run, where
    it repeats 20 times without saying what.

    References:
        Mo et al., Layer-wise Characterization of Latent Information Leakage in Federated Learning, 2021, eq. 7 and 8,
        sections 4.2, 7 and 9.3. Xu et al., A Theory of Usable Information under Computational Constraints, 2020.
    """

    kind: Literal["v_information"] = "v_information"
    families: Annotated[tuple[Single, ...], Field(min_length=1)] = ("random_forest", "network", "logistic")
    repeats: int = Field(5, ge=1)
    gradients: int = Field(400, ge=20)
    entries: int | None = Field(None, ge=1)
    models_defence: bool = False
    threat: ThreatModel = ThreatModel(knows=frozenset({Knows.LOCAL_STEPS, Knows.AUXILIARY}))

    @classmethod
    def quantities(cls) -> Mapping[str, Quantity]:
        """Return what it reads; `label_v_information` is its name where a class stands in the place of the property."""
        return {
            "v_information": Quantity("V-information", "nats", leaks="high"),
            "v_information_random_forest": Quantity("V-information (random forest)", "nats", leaks="high"),
            "v_information_network": Quantity("V-information (network)", "nats", leaks="high"),
            "v_information_logistic": Quantity("V-information (logistic)", "nats", leaks="high"),
            "label_v_information": Quantity("V-information of labels", "nats", leaks="high"),
        }

    def read(self, run: Run, rng: Stream) -> Finding:
        """Attack once for each family and repeat, and score all answers."""
        attack = PropertyInference(
            layers="each", gradients=self.gradients, entries=self.entries, models_defence=self.models_defence
        )
        attack.check(self.threat.knows)
        view = self.threat.view(run)
        seed = int(torch.randint(1 << 62, (), generator=rng))
        # Within a repeat all families learn from the same gradients.
        guesses = [
            [prepared.scores(family) for family in self.families]
            for repeat in range(self.repeats)
            for prepared in [attack.prepare(view, stream(seed, self.kind, repeat))]
        ]
        first = guesses[0][0]
        truth = self._truth(run, first)
        worth = torch.stack([torch.stack([gains(guess.values, truth) for guess in repeat]) for repeat in guesses])
        halves = (stream(seed, self.kind, repeat, "halves") for repeat in range(self.repeats))
        measured = dict(
            zip(
                (f"{self.kind}_{family}" for family in self.families),
                balanced_mean(worth, truth).unbind(1),
                strict=True,
            )
        )
        measured[self.kind] = torch.stack(
            [best_of(gain, truth, half) for gain, half in zip(worth, halves, strict=True)]
        )
        readings = []
        for name, values in measured.items():
            readings += _readings(name, first.layers, values, MOST, len(truth))
            readings += _readings(f"{name}_share", first.layers, values / MOST, 1.0, len(truth))
        return Finding(tuple(readings))

    def _truth(self, run: Run, guess: PropertyScores) -> Tensor:
        """Return which messages have the property, if there are enough to choose by one half and judge by the other."""
        truth = has_property([run.truth(key) for key in guess.keys])
        count = int(truth.sum())
        if min(count, len(truth) - count) < 2:
            raise Refusal(
                f"{self.kind} needs two messages with the property and two without. {count} of {len(truth)} have it; "
                "observe more of them, or let participants train by the schedule `by_property`."
            )
        return truth


def _readings(name: str, layers: Sequence[str | None], values: Tensor, most: float, messages: int) -> list[Reading]:
    """Return the mean over repeats (rows) for each layer (columns); no interval reaches beyond the most there is."""
    readings = []
    for layer, repeated in zip(layers, values.T.tolist(), strict=True):
        low, high = t_interval(repeated)
        readings.append(
            Reading(
                name=name,
                value=sum(repeated) / len(repeated),
                low=low,
                high=None if high is None else min(high, most),
                n=messages,
                chance=0.0,
                leaks="high",
                against="raw",
                layer=layer,
                each=tuple(repeated),
            )
        )
    return readings
