"""The time budget: which attacks, and how long, fit into the time that somebody has. Decided once, from measured costs, and kept."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Literal

from pydantic import SerializeAsAny

from leaktight.attacks.strongest import Strongest
from leaktight.attacks.suite import POSTERIOR, fitting, scale
from leaktight.audit.plan import Plan, changed_in
from leaktight.core.attack import Attack
from leaktight.core.document import parse_json
from leaktight.core.errors import InvalidValue, Refusal
from leaktight.core.input_file import LARGEST_SETTINGS, read_input
from leaktight.core.private import write_private
from leaktight.core.probe import Attempt
from leaktight.core.random import stream
from leaktight.core.scenario import Observation, Scenario
from leaktight.core.threat import View
from leaktight.core.value import Value

BUDGET_FILE = "budget.json"
UNITS = {"s": 1, "m": 60, "h": 3600}
LEAST = 20.0
"""The shortest budget in seconds: measuring what things cost takes a part of it."""
AIM = 0.8
"""The share of a budget that the estimate may fill: costs are measured on few steps."""
FACTORS = (1.0, 0.7, 0.5, 0.35, 0.25, 0.15, 0.1)
"""How much of its usual effort each attack may be cut to, in turn."""
SHORT = 0.02, 0.06
"""Which shares of its usual effort an attack is timed at."""
MOST_SEARCHED = 64
"""For how many messages a search is reckoned, where a plan asks for all."""
ROUNDS = 1, 3
"""After how many rounds a training run is timed."""


class TimeBudget(Value):
    """What fits into a budget: the list of attacks that an audit then follows, whatever the clock says.

    Args:
        seconds: the budget.
        training: how many seconds of it training runs take, by estimate.
        attacks: how many seconds of it attacks take, by estimate.
        members: the attacks of the suite, each with its effort.
        left_out: the attacks that do not fit, each with the reason.
    """

    seconds: float
    training: float
    attacks: float
    members: dict[str, SerializeAsAny[Attack]]
    left_out: dict[str, str] = {}

    def apply(self, plan: Plan) -> Plan:
        """Return a plan whose suites try what is on the list."""
        listed = Strongest(members=self.members, left_out=self.left_out)
        probes = {name: suite.model_copy(update={"attack": listed}) for name, suite in _suites(plan).items()}
        return plan.model_copy(update={"probes": {**plan.probes, **probes}})

    def __str__(self) -> str:
        """Say what was decided, in a sentence."""
        posterior = self.members.get(POSTERIOR)
        effort = f", searches of {dict(posterior)['iterations']} iterations" if posterior is not None else ""
        missing = f" Not tried: {', '.join(self.left_out)}." if self.left_out else ""
        return (
            f"Budget of {_spell(self.seconds)}: about {_spell(self.training)} for training and {_spell(self.attacks)} for attacks "
            f"({', '.join(self.members)}{effort}).{missing}"
        )


def read_time(text: str) -> float:
    """Return the seconds that a text such as `90s`, `10m` or `2h` names.

    Example:
        >>> read_time("10m"), read_time("1.5h")
        (600.0, 5400.0)
    """
    number, unit = text[:-1], text[-1:]
    try:
        seconds = float(number) * UNITS[unit]
    except (KeyError, ValueError):
        raise InvalidValue(f"A budget must be a time such as `90s`, `10m` or `2h`. Got {text!r} instead.") from None
    if not LEAST <= seconds < float("inf"):
        raise InvalidValue(f"A budget must be at least {LEAST:g} seconds. Got {text!r} instead.")
    return seconds


def fit_budget(plan: Plan, seconds: float, workers: int, folder: Path) -> Plan:
    """Return a plan that ends within a budget; the list that was made before in the same folder is used again.

    Costs are measured only where there is no list yet, so that resuming, and other numbers of workers, give the same results.

    Args:
        plan: what is to be measured, with at least one suite.
        seconds: the budget.
        workers: how many processes share the work.
        folder: the audit's folder.
    """
    if not _suites(plan):
        raise InvalidValue('A budget is for the suite of attacks. Add `[[attacks]]` with `preset = "strongest"` to the plan.')
    path = folder / BUDGET_FILE
    if path.exists():
        kept = _read(path)
        if kept.seconds == seconds:
            return kept.apply(plan)
    found = decide(plan, seconds, workers)
    write_private(path, json.dumps(found.to_dict(), indent=2).encode())
    return found.apply(plan)


def _read(path: Path) -> TimeBudget:
    try:
        return TimeBudget.model_validate(parse_json(read_input(path, LARGEST_SETTINGS)))
    except (ValueError, InvalidValue):
        raise InvalidValue(f"The list of attacks in `{path}` cannot be read. Delete it, and a new one is made.") from None


def decide(plan: Plan, seconds: float, workers: int) -> TimeBudget:
    """Measure what training runs and attacks cost, and return what fits.

    Raises:
        InvalidValue: the training runs alone take longer.
    """
    started = time.monotonic()
    training = sum(_training_cost(plan, scenario) for scenario in plan.scenarios.values()) / workers
    suite = dict(Strongest().suite())
    costs = _attack_costs(plan, suite)
    left = AIM * seconds - training - (time.monotonic() - started)
    if left <= 0:
        raise InvalidValue(
            f"The training runs of this plan alone take about {_spell(training)}. Give a longer budget than {_spell(seconds)}, or fewer "
            "rounds, defences or seeds."
        )
    chosen, left_out = dict(suite), dict[str, str]()
    while True:
        for factor in FACTORS:
            total = sum(costs[name](factor) for name in chosen) / workers
            if total <= left:
                return TimeBudget(
                    seconds=seconds, training=training, attacks=total, members=scale(chosen, factor), left_out=left_out
                )
        # The dearest first: what is left can try longer.
        dearest = max(chosen, key=lambda name: costs[name](FACTORS[-1]))
        del chosen[dearest]
        left_out[dearest] = f"it takes about {_spell(costs[dearest](FACTORS[-1]) / workers)} and does not fit into the budget"
        if not chosen:
            raise InvalidValue(f"No attack of the suite fits into {_spell(seconds)}. Give a longer budget.")


Cost = Callable[[float], float]
"""From the share of an attack's usual effort to seconds over the whole plan."""


def _training_cost(plan: Plan, scenario: Scenario) -> float:
    """Estimate the seconds of all training runs of a scenario, one after the other."""
    rounds = dict(scenario).get("rounds")
    total = 0.0
    for defence in (scenario.baseline, *plan.defences):
        if not isinstance(rounds, int) or scenario.untrained:
            total += _time(partial(scenario.train, defence, plan.grid.seeds[0]))
            continue
        short, longer = (
            _time(partial(changed_in(scenario, rounds=count).train, defence, plan.grid.seeds[0])) for count in ROUNDS
        )
        each = max(longer - short, 0.0) / (ROUNDS[1] - ROUNDS[0])
        total += short + each * max(rounds - ROUNDS[0], 0)
    return total * len(plan.grid.seeds)


def _attack_costs(plan: Plan, suite: dict[str, Attack]) -> dict[str, Cost]:
    """Return what each attack of the suite costs over the whole plan, by its effort."""
    grid = plan.grid
    slopes, starts = dict.fromkeys(suite, 0.0), dict.fromkeys(suite, 0.0)
    # Each cell of a defence, and one on noise beside those without a defence.
    cells = len(grid.seeds) * len(grid.stages) * (len(plan.defences) + 2)
    for probe in _suites(plan).values():
        for scenario in plan.scenarios.values():
            untrained = changed_in(scenario, rounds=0) if "rounds" in type(scenario).model_fields else scenario
            training = untrained.train(scenario.baseline, grid.seeds[0])
            for size in grid.batch_sizes:
                observation = Observation(grid.stages[0], size, _victims(grid.victims, 1), grid.seeds[0])
                view = probe.threat.view(untrained.observe(training, scenario.baseline, observation))
                for name in fitting(suite, view)[0]:
                    short, longer = (_time_attack(scale(suite, share)[name], view) for share in SHORT)
                    slope = max(longer - short, 0.0) / (SHORT[1] - SHORT[0])
                    # Searches cost more, the more messages there are; what is learned is learned once for all.
                    many = _victims(grid.victims, MOST_SEARCHED) if suite[name].principle == "search" else 1
                    slopes[name] += cells * slope * many
                    starts[name] += cells * max(short - SHORT[0] * slope, 0.0)
    return {name: partial(_line, starts[name], slopes[name]) for name in suite}


def _line(start: float, slope: float, factor: float) -> float:
    return start + slope * factor


def _victims(victims: int | Literal["all"], most: int) -> int:
    """Return a number of victims, at most so many where the plan asks for all."""
    return min(victims, most) if isinstance(victims, int) else most


def _time_attack(attack: Attack, view: View) -> float:
    try:
        return _time(partial(attack, view, stream(0, "cost")))
    except Refusal:
        return 0.0


def _time(work: Callable[[], object]) -> float:
    started = time.monotonic()
    work()
    return time.monotonic() - started


def _suites(plan: Plan) -> dict[str, Attempt]:
    """Return the probes of a plan that hold the suite."""
    return {n: p for n, p in plan.probes.items() if isinstance(p, Attempt) and isinstance(p.attack, Strongest)}


def _spell(seconds: float) -> str:
    """Say a time in words.

    Example:
        >>> _spell(42), _spell(600)
        ('42 s', '10 min')
    """
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
