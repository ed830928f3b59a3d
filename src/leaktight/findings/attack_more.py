"""Attack more: how an audit continues where no attack has read what is read without a defence."""

from __future__ import annotations

from collections.abc import Sequence

from leaktight.attacks.strongest import Strongest
from leaktight.attacks.suite import scale
from leaktight.core.errors import InvalidValue
from leaktight.core.probe import Attempt
from leaktight.core.threat import Knows, ThreatModel
from leaktight.findings.verdict import Judgement
from leaktight.metrics import standard
from leaktight.plans.plan import Further, Plan

FACTOR = 4
"""How many times as hard the suite tries each time."""
BROKEN = ("refuted", "leaks")


def plan_more(plan: Plan, judgements: Sequence[Judgement]) -> Plan:
    """Return the plan with a suite that tries harder.

    The suite attacks every defence that is not broken yet and, for comparison, messages without a defence.

    Args:
        plan: what was measured.
        judgements: what was found.

    Raises:
        InvalidValue: every defence is broken, so that there is nothing left to try.
    """
    names = list(plan.scenarios)
    left = {
        (names[one.scenario - 1], one.defence.key): one.defence
        for one in judgements
        if one.verdict not in BROKEN and any(one.defence.key == defence.key for defence in plan.defences)
    }
    if not left:
        raise InvalidValue(
            "Every defence of this audit is broken, so there is nothing left to attack. Add other defences to the plan."
        )
    times = FACTOR ** (1 + len({one.label for one in plan.further}))
    label, probe = f"strongest, {times} times as long", _harder(plan, times)
    twins = {name: plan.scenarios[name].baseline for name, _ in left}
    asked = [*twins.items(), *((name, defence) for (name, _), defence in left.items())]
    further = tuple(Further(scenario=name, defence=defence, label=label, probe=probe) for name, defence in asked)
    return plan.model_copy(update={"further": (*plan.further, *further)})


def _harder(plan: Plan, times: int) -> Attempt:
    """Return a suite that tries so many times as hard: the plan's own, or else the whole one.

    The whole one attacks from the seat of the plan's first attacker.
    """
    attempts = [probe for probe in plan.probes.values() if isinstance(probe, Attempt)]
    own = next((probe for probe in attempts if isinstance(probe.attack, Strongest)), None)
    # What a budget cut or left out is tried at its usual effort first.
    harder = Strongest(members=scale(Strongest().suite(), times))
    if own is not None:
        return own.model_copy(update={"attack": harder})
    seat = attempts[0].threat.seat if attempts else ThreatModel().seat
    knows = frozenset({Knows.LOCAL_STEPS}) | harder.wants
    return Attempt(attack=harder, threat=ThreatModel(seat=seat, knows=knows), metrics=standard())
