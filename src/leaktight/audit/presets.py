"""Preset plans: an audit for whoever has a model and data but no opinion yet."""

from __future__ import annotations

from typing import Any

from leaktight.attacks.presets import preset
from leaktight.audit.plan import Grid, Plan
from leaktight.core.attack import Attack
from leaktight.core.defence import Defence
from leaktight.core.probe import Attempt, Probe
from leaktight.core.threat import Knows, ThreatModel
from leaktight.data import Photos
from leaktight.data.source import Source
from leaktight.defences import DPSGD, GaussianNoise, LaplaceNoise, Pruning, TopK
from leaktight.learning.federated import Federated
from leaktight.learning.optimiser import Adam
from leaktight.learning.protocol import FedSGD
from leaktight.metrics import standard as standard_metrics
from leaktight.models.dlnet import DLNet
from leaktight.models.network import Network

POSTERIOR = "posterior"
"""Our strongest preset, which knows the defence: what survives weaker attacks alone is no finding."""


def quick(model: Network | None = None, data: Source | None = None) -> Plan:
    """Return a plan that ends within about two minutes on two cores for a small network: is there a leak at all?

    Args:
        model: the network; None takes DLNet, whose leakage is well studied.
        data: the examples; None takes bundled photographs.

    Example:
        >>> [scenario] = quick().scenarios.values()
        >>> scenario.model.kind, scenario.data.kind
        ('dlnet', 'photos')
    """
    return Plan(
        title="Quick audit",
        scenarios={"1": _scenario(model, data, rounds=100)},
        defences=(*(GaussianNoise(std=std) for std in (0.0001, 0.001, 0.1)), TopK(share=0.1), DPSGD()),
        probes=_attempts({"idlg2020*": preset("idlg2020", iterations=80), POSTERIOR: preset(POSTERIOR)}),
        grid=Grid(batch_sizes=(1,), stages=("initial",), victims=6),
    )


def standard(model: Network | None = None, data: Source | None = None) -> Plan:
    """Return a plan that takes hours and whose numbers can be relied on: more attacks, defences, batch sizes and seeds.

    Args:
        model: the network; None takes DLNet.
        data: the examples; None takes bundled photographs.

    Example:
        >>> len(standard().grid.seeds)
        3
    """
    defences: tuple[Defence, ...] = (
        *(GaussianNoise(std=std) for std in (0.0001, 0.001, 0.01, 0.1)),
        *(LaplaceNoise(scale=scale) for scale in (0.001, 0.01)),
        *(TopK(share=share) for share in (0.3, 0.1, 0.05)),
        *(Pruning(rate=rate) for rate in (0.7, 0.95, 0.99)),
        DPSGD(),
    )
    attacks = {name: preset(name) for name in ("dlg2019", "idlg2020", "geiping2020", POSTERIOR)}
    return Plan(
        title="Standard audit",
        scenarios={"1": _scenario(model, data, rounds=200)},
        defences=defences,
        probes=_attempts(attacks),
        grid=Grid(batch_sizes=(1, 4, 8), stages=("initial", "early", "end"), seeds=(0, 1, 2), victims=16),
    )


def _scenario(model: Network | None, data: Source | None, **settings: Any) -> Federated:
    # DLNet was published without normalisation and hardly trains by plain SGD.
    own: dict[str, Any] = {} if model else {"model": DLNet(), "normalise": False}
    protocol = FedSGD(optimiser=Adam(learning_rate=0.003))
    return Federated(**{"data": data or Photos(), "model": model, "device": "auto", "protocol": protocol, **own, **settings})


def _attempts(attacks: dict[str, Attack]) -> dict[str, Probe]:
    return {
        name: Attempt(attack=attack, threat=_threat(attack), metrics=standard_metrics()) for name, attack in attacks.items()
    }


def _threat(attack: Attack) -> ThreatModel:
    """Return what everybody knows, and the defence where the attack models it."""
    return ThreatModel(knows=frozenset({Knows.LOCAL_STEPS}) | attack.wants)
