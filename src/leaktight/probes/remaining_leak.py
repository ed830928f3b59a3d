"""Remaining leak: what messages still tell of a private property once some layers are sealed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from leaktight.attacks.property_classifier import Family, fit
from leaktight.attacks.property_inference import JOINED, PreparedFeatures, PropertyInference, label_shares
from leaktight.core.message import layer_of
from leaktight.core.metric import Quantity, Reading
from leaktight.core.probe import Finding, Probe
from leaktight.core.random import Stream, stream
from leaktight.core.run import Run
from leaktight.core.threat import Knows, ThreatModel
from leaktight.defences.sealing_order import sealing_order
from leaktight.metrics.property_auc import has_property, property_interval
from leaktight.statistics.auc import GUESSING

REMAINING, COUNT, BYTES, BASELINE = "remaining_auc", "sealed_layers", "sealed_bytes", "counting_auc"


class RemainingLeak(Probe):
    r"""Say which layers to seal first, and what an attack on the property gets from the others.

    To hide the layer that tells most by itself may hide nothing, as all layers come from the same examples. So layers
    are ranked by what is left: `sealing_order` looks at gradients that the attacker makes of public examples, and
    whoever defends can make the same. For every count k of sealed layers, property inference is then asked about the
    run's messages without these layers. Of all remaining layers together and each of them alone it uses what tells
    most of gradients of its own that it has not learned from.

    Readings, by layer: `remaining_auc`, once this layer and all before it are sealed; `sealed_layers`, k;
    `sealed_bytes`, how many bytes of parameters these layers have. `remaining_auc` without a layer is that of whole
    messages. Intervals are those of `PropertyAuc`; nothing is known where nothing remains, which counts as a half. The
    attacker knows the parameters of sealed layers as they were handed out (see `Sealed`).

    `counting_auc` is the AUC of an attacker who is told the labels behind each message and nothing else, and counts
    them: where the property goes along with the labels, a message reveals it even though its gradients say no more
    than what is learned.

    Args:
        gradients: how many gradients the attacker learns from, at least 20; more is stronger.
        classifier: how it learns.
        matched: whether its own batches have labels alike with the property and without.
        models_defence: whether its own gradients go through the known defence.
        threat: where the attacker sits and what it knows: public examples at least.

    Example:
        >>> from leaktight.core.random import stream
        >>> from leaktight.testing import property_run
        >>> probe = RemainingLeak(gradients=80, classifier="logistic")
        >>> found = probe.read(property_run(), stream(0, "remaining")).readings
        >>> [(reading.name, reading.layer is None) for reading in found][:2]
        [('counting_auc', True), ('remaining_auc', True)]
        >>> sorted(reading.value for reading in found if reading.name == "sealed_layers")
        [1.0, 2.0]

    Differs from the paper: it ranks layers by what each tells alone, and does not ask what the others tell then.

    References:
        Mo et al., Layer-wise Characterization of Latent Information Leakage in Federated Learning, 2021, section 7.
    """

    kind: Literal["remaining_leak"] = "remaining_leak"
    gradients: int = Field(400, ge=20)
    classifier: Family = "random_forest"
    matched: bool = False
    models_defence: bool = False
    threat: ThreatModel = ThreatModel(knows=frozenset({Knows.LOCAL_STEPS, Knows.AUXILIARY}))

    @classmethod
    def quantities(cls) -> Mapping[str, Quantity]:
        """Return what it reads; names that begin with `label_` are about a class in the place of the property."""
        return {
            REMAINING: Quantity("property AUC of what remains", digits=2, leaks="high"),
            COUNT: Quantity("sealed layers", digits=0),
            BYTES: Quantity("sealed bytes", digits=0),
            BASELINE: Quantity("property AUC of counting labels", digits=2),
        }

    def read(self, run: Run, rng: Stream) -> Finding:
        """Rank layers on the attacker's own gradients, and attack the messages without them, one after the other."""
        attack = PropertyInference(
            layers="each", gradients=self.gradients, matched=self.matched, models_defence=self.models_defence
        )
        attack.check(self.threat.knows)
        view = self.threat.view(run)
        seed = int(torch.randint(1 << 62, (), generator=rng))
        prepared = attack.prepare(view, stream(seed, self.kind))
        truths = [run.truth(key) for key in prepared.keys]
        positive = has_property(truths)
        sizes: dict[str, int] = {}
        for name, tensor in run.public.public_parameters().items():
            sizes[layer_of(name)] = sizes.get(layer_of(name), 0) + tensor.nbytes
        order = [step.layer for step in sealing_order(prepared.known, prepared.positive, prepared.halves)]
        counts = torch.stack([label_shares(truth.raw.labels.cpu(), run.public.classes) for truth in truths])
        worth: dict[str, tuple[float, float]] = {}
        readings = [
            _reading(BASELINE, _count_labels(prepared, counts, seed), positive),
            _reading(REMAINING, self._answers(prepared, order, worth), positive),
        ]
        steps: dict[str, list[Reading]] = {}
        sealed = 0
        for place, layer in enumerate(order):
            sealed += sizes[layer]
            left = [one for one in prepared.unknown if one not in order[: place + 1]]
            steps[layer] = [
                _reading(REMAINING, self._answers(prepared, left, worth), positive, layer)
                if left
                else Reading(name=REMAINING, value=GUESSING, n=len(truths), chance=GUESSING, leaks="high", layer=layer),
                Reading(name=COUNT, value=place + 1, layer=layer),
                Reading(name=BYTES, value=sealed, layer=layer),
            ]
        return Finding((*readings, *(reading for layer in prepared.unknown for reading in steps[layer])))

    def _answers(
        self, prepared: PreparedFeatures, layers: Sequence[str], worth: dict[str, tuple[float, float]]
    ) -> Tensor:
        """Return what the attacker says of each message, by what of these layers tells most of its own gradients.

        What that was of which layers is kept in `worth`.
        """
        sets = {JOINED.join(layers): list(layers), **{layer: [layer] for layer in layers}}
        for name, own in sets.items():
            if name not in worth:
                worth[name] = prepared.cross_validate(self.classifier, own, name)
        chosen = max(sets, key=lambda name: worth[name])
        return prepared.score(self.classifier, sets[chosen], chosen)


def _count_labels(prepared: PreparedFeatures, counts: Tensor, seed: int) -> Tensor:
    """Return what somebody says of each message who learned from the labels of the attacker's gradients alone."""
    return fit("logistic", prepared.labels, prepared.positive, stream(seed, "labels"))(counts)


def _reading(name: str, scores: Tensor, positive: Tensor, layer: str | None = None) -> Reading:
    value, (low, high) = property_interval(scores, positive)
    return Reading(
        name=name,
        value=value,
        low=low,
        high=high,
        n=len(positive),
        chance=GUESSING,
        leaks="high" if name == REMAINING else None,
        against="raw",
        layer=layer,
    )
