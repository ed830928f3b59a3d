"""Validation: what can be known to go wrong before an audit starts is said then, once, and not in every cell."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Set

from leaktight.core.display import join_words
from leaktight.core.errors import InvalidValue, did_you_mean
from leaktight.core.probe import Attempt, Probe
from leaktight.core.threat import ThreatModel
from leaktight.learning.protocol import SERVER
from leaktight.plans.plan import Plan

WIRE = "wire"
_log = logging.getLogger(__name__)


def validate_plan(plan: Plan) -> None:
    """Load the data, build the model and seat the attackers, for every scenario and seed.

    Chains in which a link undoes another one are warned about; what they leak is still worth knowing.

    Raises:
        InvalidValue: an attack needs to know what its threat model withholds, data or model cannot be used, a defence
            cannot be agreed on, a batch is larger than what a participant owns, or a seat or a stage is not there.
    """
    for sentence in dict.fromkeys(sentence for defence in plan.defences for sentence in defence.conflicts()):
        _log.warning(sentence)
    _check_knowledge({**plan.probes, **{one.label: one.probe for one in plan.further}})
    grid = plan.grid
    victims = None if isinstance(grid.victims, str) else grid.victims
    for scenario in plan.scenarios.values():
        for stage in grid.stages:
            if stage not in scenario.stages:
                known = ", ".join(f"`{name}`" for name in scenario.stages)
                raise InvalidValue(
                    f"There is no stage `{stage}` in a scenario of kind {scenario.kind}. Known are: {known}."
                )
        seats = scenario.seats(grid.seeds, grid.batch_sizes)
        scenario.check(plan.defences, grid.stages, victims, grid.seeds[0])
        for label, probe in plan.probes.items() if seats else ():
            _check_seats(probe, label, seats)


def _check_knowledge(probes: Mapping[str, Probe]) -> None:
    """Check that every attack is granted what it needs; those that are not would be refused in every cell."""
    withheld = {
        label: sorted(missing)
        for label, probe in probes.items()
        if isinstance(probe, Attempt) and (missing := probe.attack.needs - probe.threat.knows)
    }
    if withheld:
        needs = join_words([f"{label} needs {join_words(names)}" for label, names in withheld.items()])
        attacks = "the attack" if len(withheld) == 1 else "these attacks"
        raise InvalidValue(
            f"What the attacker `knows` contradicts the attacks: {needs}. Add that to `knows` in `[threat]`, or leave "
            f"{attacks} out."
        )


def _check_seats(probe: Probe, label: str, seats: Set[str]) -> None:
    """Check that an attack finds the seats it observes from, and those it takes in the training run."""
    threat = getattr(probe, "threat", None)
    if isinstance(threat, ThreatModel) and threat.seat not in {*seats, WIRE}:
        wanted = did_you_mean(threat.seat, {*seats, WIRE})
        raise InvalidValue(f"There is no seat `{threat.seat}` for {label} in this scenario. {wanted}")
    if not isinstance(probe, Attempt):
        return
    # Nobody can train in the server's place, and the wire is no place at all.
    places = set(seats - {SERVER})
    for seat in (*([probe.threat.seat] if probe.attack.active else []), *probe.attack.further):
        if seat not in places:
            raise InvalidValue(
                f"The attack {label} must take a participant's seat, as it takes part in training. Got `{seat}` "
                f"instead. {did_you_mean(seat, places)}"
            )
