"""The forecast: what is left takes as long as its kind, not as long as what ended before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from leaktight.defences import GaussianNoise, TopK
from leaktight.running.forecast import Estimate, Forecast, kinds_of
from leaktight.running.training_cache import TrainingSpec

CHEAP, SEARCH = (("cell", "analytic"), "algebra"), (("cell", "posterior"), "search")


class Clock:
    """A clock that goes when it is told to."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_the_last_cells_are_the_expensive_ones_and_it_is_known(clock: Clock) -> None:
    forecast = Forecast(1, clock)
    for kinds in [CHEAP] * 10 + [SEARCH] * 3:
        forecast.expect(kinds)
    for number in range(9):
        forecast.start(f"cheap {number}", CHEAP)
        clock.now += 1
        forecast.end(f"cheap {number}", CHEAP, 1.0)
    assert forecast.estimate() == Estimate(1.0, at_least=True)
    forecast.start("search", SEARCH)
    clock.now += 100
    # One search lasts for so long already, and two more are to come.
    assert forecast.estimate() == Estimate(201.0, at_least=True)
    forecast.end("search", SEARCH, 100.0)
    assert forecast.estimate() == Estimate(201.0)


def test_workers_share_what_is_left_but_not_one_task(clock: Clock) -> None:
    forecast = Forecast(2, clock)
    forecast.learn(SEARCH, 30.0)
    forecast.learn(CHEAP, 2.0)
    for kinds in (SEARCH, CHEAP):
        forecast.expect(kinds)
    assert forecast.estimate() == Estimate(30.0)
    forecast.expect(SEARCH)
    assert forecast.estimate() == Estimate(31.0)
    forecast.start("one", SEARCH)
    clock.now += 10
    assert forecast.estimate() == Estimate(30.0)


def test_a_training_run_says_by_itself_how_long_it_lasts(clock: Clock) -> None:
    forecast = Forecast(1, clock)
    forecast.expect(("training",))
    assert forecast.estimate() is None
    forecast.start("one", ("training",))
    clock.now += 5
    assert forecast.estimate() is None
    forecast.advance("one", 0.25)
    assert forecast.estimate() == Estimate(15.0)


def test_a_task_that_begins_again_counts_once(clock: Clock) -> None:
    forecast = Forecast(None, clock)
    forecast.learn(SEARCH, 10.0)
    forecast.expect(SEARCH)
    forecast.start("one", SEARCH)
    clock.now += 4
    forecast.start("one", SEARCH)
    assert forecast.estimate() == Estimate(10.0)
    forecast.end("one", SEARCH, 0.0)
    assert forecast.estimate() == Estimate(0.0)


def test_what_was_not_begun_teaches_nothing(clock: Clock) -> None:
    forecast = Forecast(1, clock)
    forecast.expect(SEARCH)
    forecast.expect(SEARCH)
    forecast.end("refused", SEARCH, 0.0)
    assert forecast.estimate() is None


def test_kinds_go_from_narrow_to_wide(toy_plan: Callable[..., Any]) -> None:
    plan = toy_plan(defences=(TopK(), GaussianNoise()), batch_sizes=(1, 4))
    cells = [cell for cell in plan.cells() if cell.purpose == "measure"]
    kinds = {(cell.defence.kind, cell.batch_size): kinds_of(cell) for cell in cells}
    # A defence does not change what an attack costs as much as a batch does.
    assert kinds["none", 1] == kinds["top_k", 1]
    assert kinds["none", 1][0] != kinds["none", 4][0]
    assert kinds["none", 1][1:] == kinds["none", 4][1:]
    training_kinds = [kinds_of(TrainingSpec(scenario=cell.scenario, defence=cell.defence)) for cell in cells[::2]]
    assert len({one[0] for one in training_kinds}) == 3
    assert len({one[1:] for one in training_kinds}) == 1
