"""A glance: what messages leak as they are, by attacks that take seconds, before an audit begins that takes minutes."""

from __future__ import annotations

from leaktight.attacks import Analytic, LabelReading, RunningStatistics
from leaktight.core.attack import Attack
from leaktight.core.probe import Attempt
from leaktight.core.threat import Knows, ThreatModel
from leaktight.metrics import standard
from leaktight.plans.plan import Plan

ATTACKS: tuple[Attack, ...] = (Analytic(), LabelReading(), RunningStatistics())
"""What reads a message without a search. Those that do not fit a network are refused, each in its cell."""


def glance(plan: Plan) -> Plan:
    """Return a plan that asks at once what another one's messages give away, untrained and without a defence.

    Args:
        plan: the whole audit, with a single scenario.

    Example:
        >>> from leaktight.plans.presets import quick
        >>> [str(cell.defence) for cell in glance(quick()).cells() if cell.purpose == "measure"]
        ['none', 'none', 'none']
    """
    threat = ThreatModel(knows=frozenset({Knows.LOCAL_STEPS}))
    return Plan(
        title=plan.title,
        scenarios={name: scenario.shorten(0) for name, scenario in plan.scenarios.items()},
        probes={attack.kind: Attempt(attack=attack, threat=threat, metrics=standard()) for attack in ATTACKS},
        grid=plan.grid.model_copy(update={"stages": ("initial",)}),
    )
