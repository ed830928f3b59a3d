"""L-BFGS that never goes uphill: what it accepts, how it comes back, and that it arrives."""

import math

import pytest
import torch

from leaktight.attacks import SearchGuardedLBFGS
from leaktight.attacks.search_engine import Phase, Problem, SearchEngine, SearchSettings


def walk(value, start: torch.Tensor, steps: int, descent=None):
    """Return the accepted values and points after each step, and which rows rest at the end."""
    descent = descent or SearchGuardedLBFGS()
    points, state = start.clone(), descent.start(start)
    lowest, rest = [], torch.zeros(len(start), dtype=torch.bool)
    for _ in range(steps):
        leaf = points.detach().clone().requires_grad_(True)
        values = value(leaf)
        [slopes] = torch.autograd.grad(values.nan_to_num(0.0, 0.0).sum(), leaf)
        healthy = values.isfinite() & slopes.isfinite().all(1)
        values = values.detach().masked_fill(~healthy, math.inf)
        points, resting = state.step(points, values, slopes.masked_fill(~healthy[:, None], 0.0), 1.0)
        rest |= resting
        lowest.append(state.lowest.clone())
    return torch.stack(lowest), state.accepted, rest


def rosenbrock(points: torch.Tensor) -> torch.Tensor:
    return (100 * (points[:, 1:] - points[:, :-1].square()).square() + (1 - points[:, :-1]).square()).sum(1)


def ill_conditioned(points: torch.Tensor) -> torch.Tensor:
    return 0.5 * (torch.logspace(-3, 3, points.shape[1], dtype=points.dtype) * (points - 1).square()).sum(1)


def starts(rows=4, width=10, scale=1.0) -> torch.Tensor:
    return scale * torch.randn(rows, width, generator=torch.Generator().manual_seed(7), dtype=torch.float64)


@pytest.mark.parametrize("value", [rosenbrock, ill_conditioned], ids=["rosenbrock", "ill conditioned"])
def test_it_reaches_the_minimum(value):
    lowest, points, _ = walk(value, starts(width=2 if value is rosenbrock else 10), 400)
    assert lowest[-1].max() < 1e-8
    assert torch.allclose(points, torch.ones_like(points), atol=1e-3)


def test_what_was_forgotten_is_gone_from_both_triangles():
    points = starts(width=4)
    state = SearchGuardedLBFGS().start(points)
    for _ in range(8):
        leaf = points.clone().requires_grad_(True)
        values = ill_conditioned(leaf)
        [slopes] = torch.autograd.grad(values.sum(), leaf)
        points, _ = state.step(points, values.detach(), slopes, 1.0)
    assert state.inverse[0].any()
    state._forget(torch.tensor([True, False, False, False]))
    assert not state.inverse[0].any()
    assert torch.equal(state.transposed, state.inverse.mT)
    assert state.inverse[1].any()


@pytest.mark.parametrize("rate", [1.0, 30.0])
@pytest.mark.parametrize("value", [rosenbrock, ill_conditioned, lambda p: p.sin().sum(1) + 0.01 * p.square().sum(1)])
def test_an_accepted_objective_is_never_higher(value, rate):
    lowest, points, _ = walk(value, starts(scale=3.0), 100, SearchGuardedLBFGS(learning_rate=rate))
    slack = 1e-6 * lowest[:-1].abs()
    assert (lowest[1:] <= lowest[:-1] + slack).all()
    assert torch.allclose(value(points), lowest[-1])


@pytest.mark.parametrize("nothing", [math.nan, math.inf])
def test_it_comes_back_from_where_there_is_no_value(nothing):
    """Beyond 2 there is no value; the minimum at 1.9 is close to that edge."""

    def edge(points):
        value = 50 * (points - 1.9).square().sum(1)
        return torch.where((points > 2).any(1), torch.full_like(value, nothing), value)

    lowest, points, _ = walk(
        edge, torch.full((2, 3), -40.0, dtype=torch.float64), 100, SearchGuardedLBFGS(learning_rate=9.0)
    )
    assert lowest[-1].max() < 1e-6
    assert points.isfinite().all()


def test_a_row_that_never_had_a_value_rests():
    _, points, rest = walk(lambda p: p.sum(1) * math.nan, torch.ones(1, 3), 40)
    assert rest.tolist() == [True]
    assert torch.equal(points, torch.ones(1, 3))


def test_rows_walk_as_they_would_alone_and_rest_each_by_itself():
    start = starts(3)
    start[1] = 1.0
    together, points, rest = walk(rosenbrock, start, 60)
    for row in range(3):
        alone, own, own_rest = walk(rosenbrock, start[row : row + 1], 60)
        assert torch.allclose(together[:, row], alone[:, 0], rtol=1e-6, atol=1e-12)
        assert torch.allclose(points[row], own[0], atol=1e-6)
        assert rest[row] == own_rest[0]
    assert rest[1]


def test_rows_that_are_dropped_leave_the_others_as_they_were():
    start, kept = starts(4), torch.tensor([0, 2])
    ways = []
    for drop in (False, True):
        points = start.clone()
        state = SearchGuardedLBFGS().start(points)
        for step in range(30):
            leaf = points.detach().requires_grad_(True)
            values = rosenbrock(leaf)
            points, _ = state.step(points, values.detach(), torch.autograd.grad(values.sum(), leaf)[0], 1.0)
            if drop and step == 9:
                state.keep(kept)
                points = points[kept]
        ways.append(state.accepted)
    assert torch.allclose(ways[0][kept], ways[1], atol=1e-9)


def test_no_move_is_longer_than_it_may_be():
    descent = SearchGuardedLBFGS(learning_rate=1e6, reach=0.5)
    points = torch.full((1, 16), 1000.0)
    state = descent.start(points)
    for _ in range(10):
        moved, _ = state.step(points, points.square().sum(1), 2 * points, 1.0)
        assert (moved - state.accepted).norm() <= 0.5 * 4 + 1e-3
        points = moved
    assert SearchGuardedLBFGS(history=7).vectors_per_row == 19


def stepped(point, shared, own, row, weight):
    """A bowl with steps that no slope shows, as where an activation of a ReLU network switches."""
    jumps = ((4 * point).detach().floor() % 2).sum()
    return (shared["curvature"] * (point - shared["goal"]).square()).sum() + shared["height"] * jumps


@pytest.mark.parametrize("height", [10.0, 50.0])
def test_where_l_bfgs_stalls_adam_goes_on_and_never_ends_higher(height):
    rng = torch.Generator().manual_seed(0)
    goal, starts = 3 * torch.randn(12, generator=rng), torch.randn(20, 12, generator=rng)
    problem = Problem(
        stepped, {"goal": goal, "curvature": torch.logspace(0, 1, 12), "height": torch.tensor(height)}, {}
    )
    rests, goes_on = (
        SearchEngine(problem, SearchSettings(SearchGuardedLBFGS(adam=rate), (Phase(400),), settle=0.01))
        .run(starts, 20)
        .objective
        for rate in (0.0, 0.03)
    )
    assert (goes_on <= rests).all()
    assert (goes_on < rests - 0.1).sum() >= 2


def test_a_row_that_has_converged_is_not_revived():
    walk = SearchGuardedLBFGS().start(torch.zeros(2, 3))
    walk.promise = torch.tensor([0.5, 2.0])
    assert walk.revive(torch.tensor([True, True]), 1.0).tolist() == [False, True]
    # Once is enough: a row that settles again comes to rest.
    assert walk.revive(torch.tensor([True, True]), 1.0).tolist() == [False, False]
    assert SearchGuardedLBFGS(adam=0).start(torch.zeros(1, 3)).revive(torch.tensor([True]), -1.0).tolist() == [False]
