"""The time budget: which attacks, and how long, fit into the time that somebody has.

Decided once, from measured costs, and kept.
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from leaktight.attacks.learned_inverter import LearnedInverter
from leaktight.attacks.search_presets import SEARCHES
from leaktight.attacks.strongest import Strongest
from leaktight.attacks.suite import POSTERIOR, fitting_attacks, scale
from leaktight.core.attack import Attack
from leaktight.core.defence import Defence
from leaktight.core.display import duration
from leaktight.core.document import parse_json
from leaktight.core.errors import InvalidValue, Refusal
from leaktight.core.input_file import LARGEST_SETTINGS, read_input
from leaktight.core.private import write_private
from leaktight.core.probe import Attempt
from leaktight.core.random import stream
from leaktight.core.scenario import Observation, Scenario
from leaktight.core.threads import one_thread
from leaktight.core.threat import View
from leaktight.core.value import Value
from leaktight.plans.plan import Plan

BUDGET_FILE = "budget.json"
UNITS = {"s": 1, "m": 60, "h": 3600}
OWN_BUDGET = "10m"
"""How long an audit of a person's own network by the preset `quick` takes, unless they say: nobody knows its cost."""
NO_BUDGET = "none"
LEAST = 20.0
"""The shortest budget in seconds: measuring what things cost takes a part of it."""
AIM = 0.75
"""The share of a budget that the estimate may fill: costs are measured on few steps."""
FACTORS = (1.0, 0.7, 0.5, 0.35, 0.25, 0.15, 0.1)
"""How much of its usual effort each attack may be cut to, in turn, and how many of their rounds training runs."""
TRAINING = 0.5
"""The share of the time that training runs may take.

Longer ones have fewer rounds, because what leaks is the first question.
"""
SHORT: dict[str, tuple[float, float]] = {"search": (0.02, 0.06)}
SHORT_OTHERS = 0.1, 0.2
"""Which shares of its usual effort an attack is timed at, by what it rests on."""
CHEAPER = {POSTERIOR: "features-first"}
CHEAPER_ATTACKS: dict[str, Attack] = {name: SEARCHES[name] for name in CHEAPER.values()}
"""What is tried in place of an attack that does not fit.

It takes fewer candidates and evaluations, from the features of the first linear layer.
"""
TIMED = 2
"""On how many messages attacks are timed."""
ROUNDS = 1, 3
"""After how many rounds a training run is timed."""


class TimeBudget(Value):
    """What fits into a budget: the list of attacks that an audit then follows, whatever the clock says.

    Args:
        seconds: the budget.
        plan: the key of the plan that it was made for.
        training: how many seconds of it training runs take, by estimate.
        rounds: how many of its rounds each training run has, as a share in (0, 1].
        attacks: how many seconds of it attacks take, by estimate.
        effort: how much of its usual effort each attack may take, in (0, 1].
        names: the attacks of the suite that fit.
        left_out: those that do not, each with how many seconds it would take.
    """

    seconds: float
    plan: str
    training: float
    rounds: float = 1.0
    attacks: float
    effort: float
    names: tuple[str, ...]
    left_out: dict[str, float] = {}

    def apply(self, plan: Plan) -> Plan:
        """Return a plan whose suites try what is on the list, and whose training runs have as many rounds as fit."""
        probes = {
            name: suite.model_copy(update={"attack": self._cut(suite.attack)}) for name, suite in _suites(plan).items()
        }
        scenarios = {name: _shorten(plan, scenario, self.rounds) for name, scenario in plan.scenarios.items()}
        changes = {"probes": {**plan.probes, **probes}, "scenarios": scenarios, "caveats": self.caveats}
        return plan.model_copy(update=changes)

    @property
    def caveats(self) -> tuple[str, ...]:
        """What a reader of the results must know; nothing if nothing was cut."""
        cuts = {
            f"training runs have {100 * self.rounds:.0f} % of their rounds, so that accuracies and prices are those of "
            "shorter training runs": self.rounds < 1,
            f"each attack has {100 * self.effort:.0f} % of its usual effort": self.effort < 1,
            f"not tried: {', '.join(self.left_out)}": self.left_out,
        }
        said = "; ".join(words for words, cut in cuts.items() if cut)
        return (f"A time budget of {duration(self.seconds)} shortened this audit: {said}.",) if said else ()

    def _cut(self, attack: Attack) -> Strongest:
        suite = {**CHEAPER_ATTACKS, **_suite_of(attack)}
        members = scale({name: suite[name] for name in self.names if name in suite}, self.effort)
        return Strongest(members=members, left_out=dict.fromkeys(self.left_out, "it does not fit into the budget"))

    def __str__(self) -> str:
        """Say what was decided, in a sentence or two."""
        missing = ", ".join(f"{name} (about {duration(seconds)})" for name, seconds in self.left_out.items())
        shorter = (
            f"with {100 * self.rounds:.0f} % of their rounds, so that accuracies and prices are those of shorter "
            "training runs"
        )
        return (
            f"Budget of {duration(self.seconds)}: about {duration(self.training)} for training runs"
            f"{f' ({shorter})' if self.rounds < 1 else ''} and {duration(self.attacks)} for attacks, each at "
            f"{100 * self.effort:.0f} % of its usual effort."
            f"{f' Not tried, for want of time: {missing}.' if missing else ''}"
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


def time_limit(budget: str | None, unknown_cost: bool) -> float | None:
    """Return how many seconds an audit has; None for no limit.

    Args:
        budget: what a person says; None if they say nothing.
        unknown_cost: whether it is an audit of their own network by the preset `quick`.

    Example:
        >>> time_limit(None, True), time_limit("none", True), time_limit("1h", False), time_limit(None, False)
        (600.0, None, 3600.0, None)
    """
    chosen = (OWN_BUDGET if unknown_cost else NO_BUDGET) if budget is None else budget
    return None if chosen == NO_BUDGET else read_time(chosen)


def fit_budget(plan: Plan, seconds: float, workers: int, folder: Path) -> Plan:
    """Return a plan that ends within a budget; the list that was made before in the same folder is used again.

    Costs are measured only where there is no list yet, so that resuming, and other numbers of workers, give the same
    results.

    Args:
        plan: what is to be measured, with at least one suite.
        seconds: the budget.
        workers: how many processes share the work.
        folder: the audit's folder.
    """
    if not _suites(plan):
        raise InvalidValue(
            'A budget is for the suite of attacks. Add `[[attacks]]` with `preset = "strongest"` to the plan.'
        )
    path = folder / BUDGET_FILE
    if path.exists():
        kept = read_budget(folder)
        if (kept.seconds, kept.plan) == (seconds, plan.key):
            return kept.apply(plan)
    found = decide(plan, seconds, workers)
    write_private(path, json.dumps(found.to_dict(), indent=2).encode())
    return found.apply(plan)


def read_budget(folder: Path) -> TimeBudget:
    """Return the list that was made for an audit's folder."""
    path = folder / BUDGET_FILE
    try:
        return TimeBudget.model_validate(parse_json(read_input(path, LARGEST_SETTINGS)))
    except (ValueError, InvalidValue):
        raise InvalidValue(
            f"The list of attacks in `{path}` cannot be read. Delete it, and a new one is made."
        ) from None


def decide(plan: Plan, seconds: float, workers: int) -> TimeBudget:
    """Measure what training runs and attacks cost, and return what fits.

    Raises:
        InvalidValue: the training runs alone take longer.
    """
    started = time.monotonic()
    cost = _training_cost(plan, workers)
    rounds = next((share for share in FACTORS if cost(share) <= TRAINING * AIM * seconds), FACTORS[-1])
    training = cost(rounds)
    _check_training(training, seconds)
    suite = {name: attack for probe in _suites(plan).values() for name, attack in _suite_of(probe.attack).items()}
    costs = _attack_costs(plan, {**suite, **CHEAPER_ATTACKS}, workers * (AIM * seconds - training))
    left = AIM * seconds - training - (time.monotonic() - started)
    _check_training(AIM * seconds - left, seconds)
    chosen, left_out = list(suite), dict[str, float]()
    while chosen:
        for factor in FACTORS:
            total = sum(costs[name](factor) for name in chosen) / workers
            if total <= left:
                return TimeBudget(
                    seconds=seconds,
                    plan=plan.key,
                    training=training,
                    rounds=rounds,
                    attacks=total,
                    effort=factor,
                    names=tuple(chosen),
                    left_out=left_out,
                )
        # The dearest first: what is left can try longer.
        dearest = max(chosen, key=lambda name: costs[name](FACTORS[-1]))
        left_out[dearest] = costs[dearest](FACTORS[-1]) / workers
        chosen.remove(dearest)
        chosen += [CHEAPER[dearest]] if dearest in CHEAPER else []
    raise InvalidValue(f"No attack of the suite fits into {duration(seconds)}. Give a longer budget.")


def _check_training(taken: float, seconds: float) -> None:
    if taken >= AIM * seconds:
        raise InvalidValue(
            f"The training runs of this plan alone take about {duration(taken)}. Give a longer budget than "
            f"{duration(seconds)}, or fewer rounds, defences or seeds."
        )


Cost = Callable[[float], float]
"""From the share of an attack's usual effort to seconds over the whole plan."""


def _training_cost(plan: Plan, workers: int) -> Cost:
    """Estimate how long all training runs take: those without a defence come first, the others share the workers."""
    scenarios = plan.scenarios.values()
    bare = [_run_cost(plan, scenario, scenario.baseline) for scenario in scenarios]
    others = [_run_cost(plan, scenario, defence) for scenario in scenarios for defence in plan.defences]

    def cost(rounds: float) -> float:
        defended = [run(rounds) for run in others]
        return (sum(run(rounds) for run in bare) + max(sum(defended) / workers, *defended, 0.0)) * len(plan.grid.seeds)

    return cost


def _run_cost(plan: Plan, scenario: Scenario, defence: Defence) -> Cost:
    """Estimate the seconds of one training run, by the share of its rounds; nothing for one that is refused."""
    length = scenario.length
    try:
        if not length:
            return partial(_line, _time(partial(scenario.train, defence, plan.grid.seeds[0])), 0.0)
        short, longer = (_time(partial(scenario.shorten(count).train, defence, plan.grid.seeds[0])) for count in ROUNDS)
    except Refusal:
        return partial(_line, 0.0, 0.0)
    each = max(longer - short, 0.0) / (ROUNDS[1] - ROUNDS[0])
    return partial(_line, max(short - each * ROUNDS[0], 0.0), each * length)


def _shorten(plan: Plan, scenario: Scenario, share: float) -> Scenario:
    """Return the scenario with a share of its rounds, but no fewer than a plan needs that watches the training run."""
    length, victims = scenario.length, plan.grid.victims
    if share == 1 or not length:
        return scenario
    least = 1
    if isinstance(victims, int) and "training" in plan.grid.stages:
        least = scenario.least_rounds(victims)
    return scenario.shorten(min(length, max(least, int(share * length))))


def _attack_costs(plan: Plan, suite: Mapping[str, Attack], most: float) -> dict[str, Cost]:
    """Return what each attack of the suite costs over the whole plan, by its effort.

    Each is timed once in each scenario and batch size, on the messages without a defence if it fits them, else under
    the first defence that it fits, and counted for every defence that it fits.

    Args:
        plan: what is to be measured.
        suite: the attacks by name.
        most: how many seconds there are for them, with all workers together.
    """
    grid = plan.grid
    slopes, starts = dict.fromkeys(suite, 0.0), dict.fromkeys(suite, 0.0)
    for probe, scenario, size in itertools.product(_suites(plan).values(), plan.scenarios.values(), grid.batch_sizes):
        victims, timed = plan.victims_in(scenario), dict[str, tuple[Attack, View]]()
        cells = dict.fromkeys(suite, 0)
        for defence in (scenario.baseline, *plan.defences):
            try:
                view = _view(scenario, probe, defence, size, min(victims, TIMED), grid.seeds[0])
            except Refusal:
                continue
            for name, attack in fitting_attacks(suite, view)[0].items():
                timed.setdefault(name, (attack, view))
                # A cell on noise beside each without a defence.
                cells[name] += len(grid.seeds) * len(grid.stages) * (2 if defence == scenario.baseline else 1)
        for name, (attack, view) in timed.items():
            # What is learned is learned once for all messages; everything else costs more, the more there are.
            times = cells[name] * (1.0 if isinstance(attack, LearnedInverter) else victims / min(victims, TIMED))
            shares = SHORT.get(attack.principle, SHORT_OTHERS)
            short = _time_attack(scale({name: attack}, shares[0])[name], view)
            # What is too dear even when it is cut short is not timed again.
            longer = short if times * short > most else _time_attack(scale({name: attack}, shares[1])[name], view)
            slope = max(longer - short, 0.0) / (shares[1] - shares[0])
            slopes[name] += times * slope
            starts[name] += times * max(short - shares[0] * slope, 0.0)
    return {name: partial(_line, starts[name], slopes[name]) for name in suite}


def _view(scenario: Scenario, probe: Attempt, defence: Defence, size: int, victims: int, seed: int) -> View:
    """Return a few messages of an untrained network, as an attacker of the plan sees them."""
    untrained = scenario.shorten(0)
    stage = "initial" if "initial" in scenario.stages else scenario.stages[0]
    run = untrained.observe(untrained.train(defence, seed), defence, Observation(stage, size, victims, seed))
    return probe.threat.view(run)


def _line(start: float, slope: float, factor: float) -> float:
    return start + slope * factor


def _time_attack(attack: Attack, view: View) -> float:
    try:
        return _time(partial(attack, view, stream(0, "cost")))
    except Refusal:
        return 0.0


def _time(work: Callable[[], object]) -> float:
    """Return how many seconds some work takes with one torch thread, as a worker has it."""
    with one_thread():
        started = time.monotonic()
        work()
        return time.monotonic() - started


def _suites(plan: Plan) -> dict[str, Attempt]:
    """Return the probes of a plan that hold the suite."""
    return {n: p for n, p in plan.probes.items() if isinstance(p, Attempt) and isinstance(p.attack, Strongest)}


def _suite_of(attack: Attack) -> Mapping[str, Attack]:
    return attack.suite() if isinstance(attack, Strongest) else {}
