"""The plan of an audit of captures: which attacks, on which messages, compared with what."""

from __future__ import annotations

import math
from pathlib import Path

import torch

from leaktight.attacks import Analytic, LabelReading, RunningStatistics, Strongest
from leaktight.attacks.linear_layer import first_linear_of_inputs
from leaktight.attacks.suite import scale
from leaktight.captures import AsCaptured, Captured, Known
from leaktight.captures.capture import Capture
from leaktight.core.attack import Attack
from leaktight.core.errors import InvalidValue
from leaktight.core.probe import Attempt
from leaktight.core.scenario import Scenario
from leaktight.core.task import Task
from leaktight.core.threat import Knows, ThreatModel
from leaktight.data.source import Source
from leaktight.metrics import standard
from leaktight.models import Factory
from leaktight.plans.plan import Grid, Plan

THOROUGH = 4
"""How many times as long a thorough audit searches."""
VICTIMS = 8
"""How many messages of each batch size are attacked, evenly spread over rounds and senders."""


def capture_plan(
    folder: Path,
    model: Factory | None = None,
    truth: Path | None = None,
    shape: tuple[int, ...] = (),
    public: Source | None = None,
    thorough: bool = False,
    known: Known | None = None,
) -> Plan:
    """Return the plan for an audit of captured messages.

    Without the truth, cells hold what the attacker itself can see. With it they are graded, and compared with what
    would have been sent without a defence.

    Args:
        folder: where the captures are.
        model: the model that was trained; None takes, and runs, what the manifests name: only for captures that you
            recorded yourself.
        truth: the file with the private batches, or a folder of such files; None if nobody gives them.
        shape: the shape of one example; empty if the manifests or the truth tell.
        public: public examples of the same kind, which the attacker is taken to know: they set chance levels.
        thorough: whether to search four times as long, on four times as many messages.
        known: what is known of how all messages were made, where their manifests do not say it.
    """
    scenario = Captured(
        folder=str(folder),
        model=model or _model_of(folder),
        shape=shape,
        truth=str(truth or ""),
        public=public,
        known=known or Known(),
        device="cpu",
    )
    captures = scenario.captures()
    sizes = {capture.manifest.step_size for capture in captures}
    return Plan(
        title="Audit of captured messages",
        scenarios=_scenarios(scenario, captures),
        defences=(AsCaptured(),) if truth else (),
        probes={
            name: Attempt(attack=attack, threat=_threat(captures, attack, public), metrics=standard())
            for name, attack in _attacks(thorough, bool(truth), scenario.task(captures[0])).items()
        },
        grid=Grid(
            batch_sizes=tuple(sorted(sizes)),
            stages=("training",),
            victims=min(len(captures), VICTIMS * (4 if thorough else 1)),
        ),
    )


def cheapest(plan: Plan) -> Plan | None:
    """Return the part of a plan whose attacks take seconds; None if there is none.

    Its cells are those of the whole plan, so that what is measured by it need not be measured again.
    """
    cheap = {name: probe for name, probe in plan.probes.items() if isinstance(probe, Attempt) and probe.attack.simple}
    return plan.model_copy(update={"probes": cheap}) if cheap else None


def _attacks(thorough: bool, graded: bool, task: Task) -> dict[str, Attack]:
    """Return what takes seconds and fits, then the suite; what reads labels alone only where somebody grades it."""
    suite = Strongest(members=scale(Strongest().suite(), THOROUGH)) if thorough else Strongest()
    # Labels that nobody grades stand beside the pictures of a search.
    labels = (LabelReading(),) if graded else ()
    algebra = (Analytic(),) if first_linear_of_inputs(task.model, math.prod(task.shape)) else ()
    statistics = (RunningStatistics(),) if graded and task.public_running() else ()
    return {attack.kind: attack for attack in (*labels, *algebra, *statistics, suite)}


def _threat(captures: list[Capture], attack: Attack, public: Source | None) -> ThreatModel:
    """Return who received the messages; public examples that are named are known to it."""
    # What is known of captured messages can be read off them: an entry of zero may have been left out.
    known = attack.wants & {Knows.DEFENCE} | ({Knows.AUXILIARY} if public is not None else set())
    return ThreatModel(seat=captures[0].manifest.receiver, knows=frozenset({Knows.LOCAL_STEPS}) | known)


def _model_of(folder: Path) -> Factory:
    """Return the model that the manifests agree on."""
    names = {capture.manifest.model for capture in Captured(folder=str(folder), model=_NOBODY).captures()}
    if len(names) != 1 or names == {""}:
        raise InvalidValue("The captures do not name one model. Give it with `--model package.module:function`.")
    return Factory(function=names.pop())


_NOBODY = Factory(function="torch.nn:Identity")


def _scenarios(scenario: Captured, captures: list[Capture]) -> dict[str, Scenario]:
    """Return one scenario for all rounds, or one for each round if the model's buffers change between them.

    A task has one set of buffers.
    """
    first: dict[int, Capture] = {}
    for capture in captures:
        first.setdefault(capture.manifest.round, capture)
    names = [name for name, _ in scenario.module(captures[0]).named_buffers()]
    if not names or len(first) == 1:
        return {"1": scenario}
    [start, *others] = [capture.parameters() for capture in first.values()]
    if all(
        torch.equal(start[name], other[name]) for other in others for name in names if name in start and name in other
    ):
        return {"1": scenario}
    return {f"round {number}": scenario.model_copy(update={"rounds": (number,)}) for number in first}
