"""Rehearsal: what can be known to go wrong before an audit starts is said then, once, and not in every cell."""

from __future__ import annotations

from contextlib import suppress
from functools import singledispatch

from leaktight.captures import Captured
from leaktight.captures.sender import exchange
from leaktight.core.defence import Undefended
from leaktight.core.errors import InvalidValue, Refusal, did_you_mean
from leaktight.core.probe import Attempt, Probe
from leaktight.core.scenario import Scenario
from leaktight.core.threat import ThreatModel
from leaktight.learning.federated import Federated
from leaktight.learning.protocol import SERVER
from leaktight.learning.split import Split
from leaktight.plans.plan import Grid, Plan

WIRE = "wire"


def validate_plan(plan: Plan) -> None:
    """Load the data, build the model and seat the attackers, for every scenario and seed.

    Raises:
        InvalidValue: data or model cannot be used, a defence cannot be agreed on, a batch is larger than what a participant owns, or a seat or a stage is not there.
    """
    for scenario in plan.scenarios.values():
        for stage in plan.grid.stages:
            if stage not in scenario.stages:
                known = ", ".join(f"`{name}`" for name in scenario.stages)
                raise InvalidValue(f"There is no stage `{stage}` in a scenario of kind {scenario.kind}. Known are: {known}.")
        seats = present(scenario, plan.grid)
        agree(scenario, plan)
        for label, probe in plan.probes.items():
            threat = getattr(probe, "threat", None)
            if seats and isinstance(threat, ThreatModel) and threat.seat not in seats:
                seat = threat.seat
                raise InvalidValue(f"There is no seat `{seat}` for {label} in this scenario. {did_you_mean(seat, seats)}")
            if seats:
                seatable(probe, label, seats - {SERVER, WIRE})


def seatable(probe: Probe, label: str, chairs: set[str]) -> None:
    """Check that an attack that takes chairs finds them: nobody can train in the server's place, and the wire is no place at all."""
    if isinstance(probe, Attempt):
        wanted = (*([probe.threat.seat] if probe.attack.active else []), *probe.attack.further)
        for seat in wanted:
            if seat not in chairs:
                raise InvalidValue(
                    f"The attack {label} must take a participant's chair, as it takes part in training. Got `{seat}` instead. {did_you_mean(seat, chairs)}"
                )


@singledispatch
def present(scenario: Scenario, grid: Grid) -> set[str]:
    """Check what a grid asks of a scenario and return the seats it has; nothing is known of a kind without a check of its own.

    A scenario of a new kind registers its own check with `present.register`.
    """
    return set()


def agree(scenario: Scenario, plan: Plan) -> None:
    """Let participants of a federation agree on each defence, and draw a batch: what they cannot do, no cell could."""
    if isinstance(scenario, Federated):
        data = scenario.data.load()
        task = scenario.task(data, plan.grid.seeds[0])
        for defence in plan.defences:
            # A refusal is a cell's own outcome.
            with suppress(Refusal):
                defence.on_agree(task)
        scenario.clients(task, data, Undefended(), plan.grid.seeds[0])[0].batches(0)


@present.register
def _(scenario: Federated, grid: Grid) -> set[str]:
    data = scenario.data.load()
    if "training" in grid.stages and not isinstance(grid.victims, str):
        scenario.watched(grid.victims)
    clients = [
        client
        for seed in grid.seeds
        for client in scenario.clients(scenario.task(data, seed), data, Undefended(), seed, batch_size=max(grid.batch_sizes))
    ]
    return {SERVER, WIRE, *(client.name for client in clients)}


@present.register
def _(scenario: Split, grid: Grid) -> set[str]:
    data = scenario.data.load()
    if min(grid.batch_sizes) < 2:
        raise InvalidValue(
            f"The `batch_sizes` of the grid must be at least 2 in split learning, which tells examples of a batch apart. Got {min(grid.batch_sizes)} instead."
        )
    parties = [
        party
        for seed in grid.seeds
        for size in grid.batch_sizes
        for party in scenario.parties(data, Undefended(), seed, batch_size=size)
    ]
    return {WIRE, *(party.name for party in parties)}


@present.register
def _(scenario: Captured, grid: Grid) -> set[str]:
    # Every capture is opened once: a damaged one is better named now than in every cell.
    captures = scenario.captures()
    task = scenario.task(captures[0])
    for capture in captures:
        exchange(capture, task)
    return {WIRE, *(capture.manifest.receiver for capture in captures)}
