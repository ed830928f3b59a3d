"""Preset plans: an audit for whoever has a model and data but no opinion yet, and a glance before a long one."""

from __future__ import annotations

from typing import Any

from leaktight.attacks import Analytic, LabelReading, RunningStatistics
from leaktight.attacks.presets import preset
from leaktight.core.attack import Attack
from leaktight.core.defence import Defence
from leaktight.core.probe import Attempt, Probe
from leaktight.core.threat import Knows, ThreatModel
from leaktight.data import Digits, Photos
from leaktight.data.source import Source
from leaktight.defences import DPSGD, GaussianNoise, LaplaceNoise, Pruning, TopK
from leaktight.learning.federated import Federated
from leaktight.learning.optimiser import Adam
from leaktight.learning.protocol import FedSGD
from leaktight.metrics import standard as standard_metrics
from leaktight.models.lenet import LeNet
from leaktight.models.network import Network
from leaktight.plans.plan import Grid, Plan

STRONGEST = "strongest"
WITHOUT_SEARCH: tuple[Attack, ...] = (Analytic(), LabelReading(), RunningStatistics())
"""What reads a message in seconds."""


def quick(model: Network | None = None, data: Source | None = None) -> Plan:
    """Return a plan that ends within about two minutes on two cores for a small network: is there a leak at all?

    Args:
        model: the network; None takes LeNet, whose leakage is well studied.
        data: the examples; None takes bundled digits, or bundled photographs for a network that is given.

    Example:
        >>> [scenario] = quick().scenarios.values()
        >>> scenario.model.kind, scenario.data.kind
        ('lenet', 'digits')
    """
    return Plan(
        title="Quick audit",
        scenarios={"1": _scenario(model, data, rounds=100)},
        defences=(*(GaussianNoise(std=std) for std in (0.001, 0.01, 0.1)), TopK(share=0.1), DPSGD()),
        probes=_attempts({STRONGEST: preset(STRONGEST)}),
        grid=Grid(batch_sizes=(1,), stages=("initial",), victims=8),
    )


def standard(model: Network | None = None, data: Source | None = None) -> Plan:
    """Return a plan that takes about twenty minutes for a small network.

    It has more defences and larger batches, and looks at the trained network too.

    Args:
        model: the network; None takes LeNet.
        data: the examples; None takes bundled digits, or bundled photographs for a network that is given.

    Example:
        >>> standard().grid.stages
        ('initial', 'end')
    """
    defences: tuple[Defence, ...] = (
        *(GaussianNoise(std=std) for std in (0.001, 0.01, 0.1)),
        LaplaceNoise(scale=0.01),
        *(TopK(share=share) for share in (0.1, 0.01)),
        *(Pruning(rate=rate) for rate in (0.7, 0.99)),
        DPSGD(),
    )
    return Plan(
        title="Standard audit",
        scenarios={"1": _scenario(model, data, rounds=200)},
        defences=defences,
        probes=_attempts({STRONGEST: preset(STRONGEST)}),
        grid=Grid(batch_sizes=(1, 4), stages=("initial", "end"), victims=8),
    )


def glance(plan: Plan) -> Plan:
    """Return a plan that asks at once what another one's messages give away, untrained and without a defence.

    Its attacks take seconds. Those that do not fit a network are refused, each in its cell.

    Args:
        plan: the whole audit, with a single scenario.

    Example:
        >>> [str(cell.defence) for cell in glance(quick()).cells() if cell.purpose == "measure"]
        ['none', 'none', 'none']
    """
    threat = ThreatModel(knows=frozenset({Knows.LOCAL_STEPS}))
    return Plan(
        title=plan.title,
        scenarios={name: scenario.shorten(0) for name, scenario in plan.scenarios.items()},
        probes={
            attack.kind: Attempt(attack=attack, threat=threat, metrics=standard_metrics()) for attack in WITHOUT_SEARCH
        },
        grid=plan.grid.model_copy(update={"stages": ("initial",)}),
    )


def _scenario(model: Network | None, data: Source | None, **settings: Any) -> Federated:
    source = data or (Photos() if model else Digits(size=16))
    protocol = FedSGD(optimiser=Adam(learning_rate=0.003))
    return Federated(**{"data": source, "model": model or LeNet(), "device": "auto", "protocol": protocol, **settings})


def _attempts(attacks: dict[str, Attack]) -> dict[str, Probe]:
    return {
        name: Attempt(attack=attack, threat=_threat(attack), metrics=standard_metrics())
        for name, attack in attacks.items()
    }


def _threat(attack: Attack) -> ThreatModel:
    """Return what everybody knows, and the defence where the attack models it."""
    return ThreatModel(knows=frozenset({Knows.LOCAL_STEPS}) | attack.wants)
