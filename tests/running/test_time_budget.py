"""A budget is spent on what was decided once: the list follows from measured costs, and everything else from the list."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from leaktight.attacks import Analytic
from leaktight.attacks.strongest import Strongest
from leaktight.attacks.suite import FREE_LOSS, POSTERIOR, SCALE_FREE, whole_suite
from leaktight.core.errors import InvalidValue, Refusal
from leaktight.core.probe import Attempt
from leaktight.core.record import Record
from leaktight.core.threat import Knows, ThreatModel
from leaktight.data import Digits, RareDigit
from leaktight.defences import GaussianNoise, Polarization
from leaktight.learning import Federated
from leaktight.learning.split import Split
from leaktight.metrics import PSNR
from leaktight.models import MLP
from leaktight.plans.plan import Grid, Plan
from leaktight.running import run, time_budget
from leaktight.running.time_budget import BUDGET_FILE, TimeBudget, decide, fit_budget, read_time

KNOWS = ThreatModel(knows=frozenset({Knows.DEFENCE, Knows.LOCAL_STEPS}))
PLAN = Plan(
    scenarios={"1": Federated(data=Digits(), model=MLP(hidden=(16,)), rounds=1, participants=2)},
    defences=(GaussianNoise(std=0.1),),
    probes={
        "strongest": Attempt(attack=Strongest(), threat=KNOWS, metrics=(PSNR(),)),
        "analytic": Attempt(attack=Analytic(), threat=KNOWS, metrics=(PSNR(),)),
    },
    grid=Grid(victims=2),
)
Costs = Callable[..., list[int]]


@pytest.fixture
def costs(monkeypatch: pytest.MonkeyPatch) -> Costs:
    """Return a function that sets what training runs and attacks take, in seconds: of an attack at its usual effort; it returns a count of measurements."""

    def set_to(training: float, attacks: dict[str, float]) -> list[int]:
        measured: list[int] = []

        def lines(plan: Plan, suite: dict[str, object], most: float) -> dict[str, Callable[[float], float]]:
            measured.append(1)
            return {name: partial(operator.mul, attacks.get(name, 0.0)) for name in suite}

        monkeypatch.setattr(time_budget, "_run_cost", lambda plan, scenario, defence: partial(operator.mul, training))
        monkeypatch.setattr(time_budget, "_attack_costs", lines)
        # The clock stands still: what measuring itself takes is not in these numbers.
        monkeypatch.setattr(time_budget, "time", SimpleNamespace(monotonic=lambda: 0.0))
        return measured

    return set_to


@pytest.mark.parametrize(("text", "seconds"), [("20s", 20.0), ("90s", 90.0), ("10m", 600.0), ("1.5h", 5400.0)])
def test_times_are_read(text: str, seconds: float) -> None:
    assert read_time(text) == seconds


@pytest.mark.parametrize("text", ["", "10", "m", "ten minutes", "10d", "nans", "infh", "-5m", "0s", "19s", "10M"])
def test_what_is_no_time_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(InvalidValue, match=r"^A budget must be .* Got '.*' instead\.$"):
        read_time(text)


def test_everything_is_tried_if_there_is_time(costs: Costs) -> None:
    costs(5.0, {POSTERIOR: 20.0, SCALE_FREE: 10.0})
    found = decide(PLAN, 60.0, workers=1)
    assert (found.names, found.effort) == (tuple(whole_suite()), 1.0)
    # Once without a defence and once with one.
    assert (found.left_out, found.training, found.attacks) == ({}, 10.0, 30.0)
    [suite] = [probe for name, probe in found.apply(PLAN).probes.items() if name == "strongest"]
    assert dict(suite)["attack"].suite() == whole_suite()


def test_all_are_cut_before_one_is_left_out(costs: Costs) -> None:
    costs(5.0, {POSTERIOR: 60.0, SCALE_FREE: 20.0})
    found = decide(PLAN, 60.0, workers=1)
    assert (found.left_out, found.effort) == ({}, 0.35)
    assert found.attacks == pytest.approx(0.35 * 80)
    assert dict(dict(found.apply(PLAN).probes["strongest"])["attack"].member(POSTERIOR))["iterations"] == 105
    assert decide(PLAN, 60.0, workers=2).attacks == pytest.approx(0.7 * 80 / 2)


def test_the_dearest_is_left_out_and_it_is_said(costs: Costs) -> None:
    costs(5.0, {POSTERIOR: 5000.0, SCALE_FREE: 300.0})
    found = decide(PLAN, 60.0, workers=1)
    assert found.left_out == {POSTERIOR: 500.0}
    # A cheaper search comes in its place.
    assert (found.names[-1], found.effort) == ("features-first", 0.1)
    assert str(found).endswith("Not tried, for want of time: posterior (about 8 min).")
    assert found.apply(PLAN).caveats == (
        "A time budget of 60 s shortened this audit: each attack has 10 % of its usual effort; not tried: posterior.",
    )


def test_training_runs_that_take_too_long_have_fewer_rounds_and_it_is_said(costs: Costs) -> None:
    costs(100.0, {})
    plan = PLAN.model_copy(update={"scenarios": {"1": PLAN.scenarios["1"].shorten(40)}})
    budget = decide(plan, 100.0, workers=1)
    # Two training runs of 100 seconds, where half of 75 seconds may go into training.
    assert (budget.rounds, budget.training) == (0.15, 30.0)
    assert budget.apply(plan).scenarios["1"].rounds == 6
    assert "with 15 % of their rounds, so that accuracies and prices are those of shorter training runs" in str(budget)
    [caveat] = budget.apply(plan).caveats
    assert "training runs have 15 % of their rounds, so that accuracies and prices are those of" in caveat
    assert decide(plan, 1000.0, workers=1).apply(plan).scenarios == plan.scenarios
    assert decide(plan, 1000.0, workers=1).apply(plan).caveats == ()


def test_a_plan_that_watches_its_training_run_keeps_the_rounds_that_it_looks_at() -> None:
    scenario = Federated(data=Digits(), model=MLP(hidden=(16,)), rounds=40, participants=2, moments=4)
    budget = TimeBudget(seconds=60, plan="", training=1, rounds=0.1, attacks=1, effort=1, names=("analytic",))
    for victims, rounds in ((12, 16), ("all", 4)):
        plan = PLAN.model_copy(
            update={"scenarios": {"1": scenario}, "grid": Grid(victims=victims, stages=("training",))}
        )
        [short] = budget.apply(plan).scenarios.values()
        assert short.rounds == rounds
        assert sum(short.continuations(12 if victims == 12 else rounds).values()) == (12 if victims == 12 else rounds)


def test_a_budget_that_training_alone_exceeds_is_refused(costs: Costs) -> None:
    costs(1000.0, {})
    with pytest.raises(
        InvalidValue, match=r"training runs of this plan alone take about 3 min. Give a longer budget than 60 s"
    ):
        decide(PLAN, 60.0, workers=1)


def test_a_budget_that_no_attack_fits_into_is_refused(costs: Costs) -> None:
    costs(0.0, dict.fromkeys((*whole_suite(), "features-first"), 1e6))
    with pytest.raises(InvalidValue, match="No attack of the suite fits into 60 s"):
        decide(PLAN, 60.0, workers=1)


def test_a_plan_without_the_suite_has_nothing_to_budget(tmp_path: Path) -> None:
    bare = PLAN.model_copy(update={"probes": {"analytic": PLAN.probes["analytic"]}})
    with pytest.raises(InvalidValue, match=r"A budget is for the suite of attacks. Add"):
        fit_budget(bare, 60.0, 1, tmp_path)


def test_the_list_is_made_once_and_used_again(costs: Costs, tmp_path: Path) -> None:
    measured = costs(10.0, {POSTERIOR: 60.0})
    first = fit_budget(PLAN, 60.0, 1, tmp_path)
    assert (tmp_path / BUDGET_FILE).stat().st_mode & 0o777 == 0o600
    again = costs(10.0, {})
    assert fit_budget(PLAN, 60.0, 4, tmp_path) == first
    assert (measured, again) == ([1], [])
    assert fit_budget(PLAN, 120.0, 1, tmp_path) != first
    assert again == [1]
    # A list that was made for another plan is none for this one.
    fit_budget(PLAN.with_seed(3), 120.0, 1, tmp_path)
    assert again == [1, 1]


def test_only_the_suite_is_changed(costs: Costs, tmp_path: Path) -> None:
    costs(10.0, {POSTERIOR: 5000.0})
    found = fit_budget(PLAN, 60.0, 1, tmp_path)
    assert found.probes["analytic"] == PLAN.probes["analytic"]
    assert POSTERIOR not in dict(found.probes["strongest"])["attack"].suite()
    assert found.scenarios == PLAN.scenarios


@pytest.mark.parametrize("text", ["", "{}", "[1", '{"seconds": "x"}'])
def test_a_list_that_cannot_be_read_is_named(costs: Costs, tmp_path: Path, text: str) -> None:
    costs(10.0, {})
    (tmp_path / BUDGET_FILE).write_text(text)
    with pytest.raises(InvalidValue, match=r"The list of attacks in `.*budget.json` cannot be read. Delete it"):
        fit_budget(PLAN, 60.0, 1, tmp_path)


def test_a_list_survives_its_file(costs: Costs) -> None:
    costs(10.0, {POSTERIOR: 60.0})
    found = decide(PLAN, 60.0, workers=1)
    assert TimeBudget.model_validate(json.loads(json.dumps(found.to_dict()))) == found


def timeless(records: list[Record]) -> list[Record]:
    return [record.model_copy(update={"seconds": 0.0}) for record in records]


@pytest.mark.long
def test_records_follow_from_the_list_whatever_the_number_of_workers(costs: Costs, tmp_path: Path) -> None:
    costs(1.0, {POSTERIOR: 1e5, SCALE_FREE: 1e5, "features-first": 1e5})
    one = run(PLAN, tmp_path / "one", budget=60.0)
    assert {
        record.reason for record in one if record.cell.label == "strongest" and record.cell.purpose == "measure"
    } == {
        "Not tried: learned_inverter: the threat model does not grant auxiliary; "
        "posterior: it does not fit into the budget; scale-free: it does not fit into the budget; "
        "features-first: it does not fit into the budget"
    }
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / BUDGET_FILE).write_bytes((tmp_path / "one" / BUDGET_FILE).read_bytes())
    costs(1.0, {})
    assert timeless(run(PLAN, tmp_path / "two", workers=2, budget=60.0)) == timeless(one)


def test_costs_are_measured_on_the_plan_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each measurement takes as many seconds as it was told; the estimate over the plan is their sum."""
    timed: list[Any] = []

    def one_second(work: Any) -> float:
        timed.append(work)
        return 1.0

    monkeypatch.setattr(time_budget, "_time", one_second)
    # One round and three rounds take the same, so that rounds cost nothing: two defences, one second each.
    assert time_budget._training_cost(PLAN, workers=1)(1.0) == 2.0
    private = PLAN.model_copy(update={"defences": (*PLAN.defences, Polarization())})
    suite = {"analytic": Analytic(), **{name: whole_suite()[name] for name in (POSTERIOR, FREE_LOSS, "clustering")}}
    lines = time_budget._attack_costs(private, suite, 100.0)
    # One cell without a defence, one with each, one on noise; what fits a private loss alone, one cell. Two messages
    # are timed, and there are two.
    costs = {name: line(1.0) for name, line in lines.items()}
    assert costs == {"analytic": 4.0, POSTERIOR: 4.0, FREE_LOSS: 1.0, "clustering": 0.0}


def test_split_learning_in_passes_has_a_budget_too(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = Split(data=RareDigit(), model=MLP(hidden=(8,)), label_party=("r0*",), passes=2)
    threat = ThreatModel(seat="feature-party", knows=frozenset({Knows.DEFENCE, Knows.HINTS}))
    plan = Plan(
        scenarios={"1": scenario},
        probes={"strongest": Attempt(attack=Strongest(), threat=threat)},
        grid=Grid(batch_sizes=(256,), stages=("training",), victims="all"),
    )
    monkeypatch.setattr(time_budget, "_time", lambda work: (work(), 1.0)[1])
    found = decide(plan, 7200.0, workers=1)
    assert found.left_out == {}
    # Attacks on labels see all messages of the training: more than were timed.
    assert found.attacks > 2 * scenario.length / 2


def test_a_training_run_that_is_refused_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise Refusal("It cannot be trained so.")

    monkeypatch.setattr(Federated, "train", refuse)
    [scenario] = PLAN.scenarios.values()
    assert time_budget._run_cost(PLAN, scenario, GaussianNoise())(1.0) == 0


def test_costs_are_those_of_a_worker_with_one_thread() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    seen: list[int] = []
    try:
        assert time_budget._time(lambda: seen.append(torch.get_num_threads())) >= 0
        assert (seen, torch.get_num_threads()) == ([1], 2)
    finally:
        torch.set_num_threads(before)
