"""Descents walk every row exactly as torch's optimiser would walk it alone."""

import pytest
import torch

from leaktight.attacks.lbfgs import SearchLBFGS
from leaktight.attacks.optimiser import SearchAdam, SearchSGD

ROWS, WIDTH, STEPS = 5, 7, 20


def curved(points: torch.Tensor) -> torch.Tensor:
    """A bent valley, another one for each row width."""
    weights = torch.linspace(0.5, 3, points.shape[-1])
    return (weights * points.square()).sum(-1) + (points[..., 1:] - points[..., :-1].square()).square().sum(-1) / 4


def slopes(points: torch.Tensor) -> torch.Tensor:
    leaf = points.detach().clone().requires_grad_(True)
    return torch.autograd.grad(curved(leaf).sum(), leaf)[0]


def alone(make, start: torch.Tensor, steps: int) -> torch.Tensor:
    leaf = start.clone().requires_grad_(True)
    optimiser = make([leaf])

    def closure():
        optimiser.zero_grad()
        value = curved(leaf)
        value.backward()
        return value

    for _ in range(steps):
        optimiser.step(closure)
    return leaf.detach()


REFERENCES = {
    "adam": (SearchAdam(learning_rate=0.05), lambda p: torch.optim.Adam(p, lr=0.05)),
    "sgd": (
        SearchSGD(learning_rate=0.02, momentum=0.9),
        lambda p: torch.optim.SGD(p, lr=0.02, momentum=0.9, nesterov=True),
    ),
    "lbfgs": (
        SearchLBFGS(learning_rate=0.3, history=6),
        lambda p: torch.optim.LBFGS(p, lr=0.3, max_iter=1, history_size=6, tolerance_change=0),
    ),
}


@pytest.mark.parametrize("name", REFERENCES)
def test_each_row_walks_as_torch_walks_it_alone(name):
    descent, make = REFERENCES[name]
    start = torch.randn(ROWS, WIDTH, generator=torch.Generator().manual_seed(3), dtype=torch.float64) / 2
    # The history keeps long vectors in the points' own type; double shows the algebra, not the rounding.
    points = start.clone()
    walk = descent.start(points)
    for _ in range(STEPS):
        points, _ = walk.step(points, curved(points), slopes(points), 1.0)
    for row in range(ROWS):
        assert torch.allclose(points[row], alone(make, start[row], STEPS), atol=1e-6)


@pytest.mark.parametrize("name", REFERENCES)
def test_dropping_rows_leaves_the_others_as_they_were(name):
    descent, _ = REFERENCES[name]
    points = torch.randn(ROWS, WIDTH, generator=torch.Generator().manual_seed(3))
    whole, part = points.clone(), points.clone()
    walk, shrinking = descent.start(whole), descent.start(part)
    kept = torch.tensor([1, 4])
    for step in range(20):
        whole, _ = walk.step(whole, curved(whole), slopes(whole), 1.0)
        part, _ = shrinking.step(part, curved(part), slopes(part), 1.0)
        if step == 9:
            shrinking.keep(kept)
            part = part[kept]
    assert torch.allclose(whole[kept], part, atol=1e-5)


def test_lbfgs_rows_rest_at_their_minimum_each_by_itself():
    start = torch.zeros(2, WIDTH)
    start[1] = 1.0
    walk = SearchLBFGS(learning_rate=1.0).start(start)
    _, resting = walk.step(start, curved(start), slopes(start), 1.0)
    assert resting.tolist() == [True, False]


def test_lbfgs_skips_pairs_that_do_not_curve_upwards():
    """On a concave stretch the history must stay empty, and the row must still move downhill."""
    points = torch.full((1, 3), 0.5)
    walk = SearchLBFGS(learning_rate=0.1).start(points)
    before = points.square().sum()
    for _ in range(3):
        points, _ = walk.step(points, -points.square().sum(1), -2 * points, 1.0)
    assert int(walk.pushed) == 0
    assert points.square().sum() > before


def test_the_schedule_scales_the_step():
    points = torch.ones(1, 3)
    for descent in (SearchAdam(), SearchSGD()):
        full, half = (
            descent.start(points).step(points, curved(points), slopes(points), rate)[0] - points for rate in (1.0, 0.5)
        )
        assert torch.allclose(full, 2 * half, atol=1e-6)
