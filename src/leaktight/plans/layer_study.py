"""Layer studies: the audits that say where in a model the leak sits."""

from __future__ import annotations

from typing import Any

from pydantic import Field, SerializeAsAny

from leaktight.attacks.presets import preset
from leaktight.attacks.property_inference import PropertyInference
from leaktight.core.device import DeviceName
from leaktight.core.errors import InvalidValue
from leaktight.core.probe import Attempt, Probe
from leaktight.core.threat import Knows, ThreatModel
from leaktight.core.value import Value
from leaktight.data import ClassProperty
from leaktight.data.source import Source
from leaktight.learning.federated import Federated
from leaktight.learning.optimiser import Adam
from leaktight.learning.protocol import FedAvg, FedSGD
from leaktight.learning.schedule import ByProperty
from leaktight.metrics import PSNR, PropertyAuc, SearchGap
from leaktight.models.network import Network
from leaktight.plans.plan import Grid, Plan
from leaktight.priors import TotalVariation
from leaktight.probes import MutualInformation, RemainingLeak, Sensitivity, VInformation

INFERENCE, RECONSTRUCTION = "inference", "reconstruction"
PRIVATE_PROPERTY, COMMONEST_CLASS = "private property", "commonest class"
"""What the attack on layers asks of the examples, as names of scenarios."""
_OPTIMISER = Adam(learning_rate=0.001)
IMAGE = 3
"""How many dimensions an image has: channels, height and width."""


class LayerStudy(Value):
    """What each layer of a model gives away: of a private property, of the labels, and of the examples themselves.

    Two audits without defence. `inference` watches a federation while it trains; every other batch of a participant
    holds the property (or, in a scenario of its own, examples of one class), and the server tells which, from each
    layer by itself. Sensitivity and mutual information come from the same runs. `reconstruction` inverts single
    gradients by one layer each, with the labels known.

    Args:
        data: the examples; with a private property, or without, which leaves that part out.
        model: the network.
        participants: how many there are, at least 1.
        rounds: how long they train.
        local_steps: steps behind one message of `inference`; with 1 a message is a gradient, with more an update of
            that many steps, as in federated averaging.
        batch_size: examples behind one step of `inference`.
        share: which part of every other batch has the property, in (0, 1]; at 1 all of it.
        matched: whether batches with the property and without have labels alike; nothing is asked of labels then.
        moments: at how many moments of the training it is looked at.
        messages: how many messages are judged; more gives narrower intervals.
        gradients: how many gradients of its own the attacker learns from; more is stronger.
        repeats: how often V-information is measured anew, for its interval.
        victims: how many single gradients of images are inverted; 0 leaves that part out, and so does a table.
        iterations: how long each inversion lasts; more is stronger.
        seed: what all randomness derives from.
        device: where tensors live.

    Example:
        >>> from leaktight.data import Parity
        >>> from leaktight.models import MLP
        >>> study = LayerStudy(data=Parity(), model=MLP(hidden=(16,)))
        >>> list(study.plans()), list(study.layers())
        (['inference', 'reconstruction'], ['body.linear1', 'head'])
        >>> list(study.plans()["inference"].scenarios)
        ['private property', 'commonest class']

    Differs from the paper: it looks at properties only; labels by the same attack, with a class in the property's
    place, and inversion by each layer are beside it here. The attacker sits at the server, not among the participants.

    References:
        Mo et al., Layer-wise Characterization of Latent Information Leakage in Federated Learning, 2021.
    """

    data: SerializeAsAny[Source]
    model: SerializeAsAny[Network]
    participants: int = Field(2, ge=1)
    rounds: int = Field(100, ge=1)
    local_steps: int = Field(1, ge=1)
    batch_size: int = Field(32, ge=1)
    share: float = Field(1.0, gt=0, le=1)
    matched: bool = False
    moments: int = Field(5, ge=1)
    messages: int = Field(100, ge=8)
    gradients: int = Field(400, ge=20)
    repeats: int = Field(3, ge=1)
    victims: int = Field(4, ge=0)
    iterations: int = Field(300, ge=1)
    seed: int = Field(0, ge=0)
    device: DeviceName = "auto"

    def plans(self) -> dict[str, Plan]:
        """Return the audits by the names of their folders."""
        found = {INFERENCE: self._inference()}
        if self.victims and len(self.data.load().shape) == IMAGE:
            found[RECONSTRUCTION] = self._reconstruction()
        return found

    def layers(self) -> tuple[str, ...]:
        """Return the layers whose tensors go out, from first to last."""
        return tuple(self._federation(self.data).task(self.data.load(), self.seed).layers())

    def _inference(self) -> Plan:
        sources: dict[str, Source] = {PRIVATE_PROPERTY: self.data} if self.data.load().property_name else {}
        # Where labels are alike in all batches there is nothing to ask of them.
        if not self.matched:
            sources[COMMONEST_CLASS] = ClassProperty(data=self.data)
        if not sources:
            raise InvalidValue(
                "Batches with matched labels need data with a private property. This has none; name one with "
                "`--property`, or leave `--matched-labels` out."
            )
        threat = ThreatModel(knows=frozenset({Knows.LOCAL_STEPS, Knows.AUXILIARY}))
        attack = PropertyInference(layers="each", gradients=self.gradients, matched=self.matched)
        probes: dict[str, Probe] = {
            attack.kind: Attempt(attack=attack, threat=threat, metrics=(PropertyAuc(),)),
            "remaining_leak": RemainingLeak(gradients=self.gradients, matched=self.matched),
            "v_information": VInformation(repeats=self.repeats, gradients=self.gradients),
            "sensitivity": Sensitivity(),
            "mutual_information": MutualInformation(),
        }
        return Plan(
            title="Where the leak sits",
            scenarios={name: self._scenario(source) for name, source in sources.items()},
            probes=probes,
            grid=Grid(batch_sizes=(self.batch_size,), stages=("training",), seeds=(self.seed,), victims=self.messages),
        )

    def _scenario(self, source: Source) -> Federated:
        schedule = ByProperty(share=self.share, matched=self.matched)
        protocol = FedAvg(optimiser=_OPTIMISER, local_steps=self.local_steps) if self.local_steps > 1 else None
        settings = {} if protocol is None else {"protocol": protocol}
        return self._federation(source, schedule=schedule, moments=self.moments, **settings)

    def _reconstruction(self) -> Plan:
        # The weight of total variation is not its source's, which blurs.
        settings: dict[str, Any] = {
            "iterations": self.iterations,
            "labels": "given",
            "prior": TotalVariation(weight=1e-3),
        }
        attacks = {layer: preset("geiping2020", layers=(layer,), **settings) for layer in self.layers()}
        threat = ThreatModel(knows=frozenset({Knows.LOCAL_STEPS, Knows.LABELS}))
        probes: dict[str, Probe] = {
            layer: Attempt(attack=attack, threat=threat, metrics=(PSNR(), SearchGap()))
            for layer, attack in attacks.items()
        }
        return Plan(
            title="What each layer reconstructs",
            scenarios={RECONSTRUCTION: self._federation(self.data)},
            probes=probes,
            grid=Grid(seeds=(self.seed,), victims=self.victims),
        )

    def _federation(self, data: Source, **settings: Any) -> Federated:
        chosen = {
            "protocol": FedSGD(optimiser=_OPTIMISER),
            "rounds": self.rounds,
            "batch_size": self.batch_size,
            "device": self.device,
            **settings,
        }
        return Federated(data=data, model=self.model, participants=self.participants, **chosen)
