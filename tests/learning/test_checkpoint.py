"""A party's parameters and moments go out as plain tensors and come back the same."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from leaktight.core.errors import InvalidValue
from leaktight.core.scenario import flatten, unflatten
from leaktight.learning import Adam, DecayedSgd, Sgd
from leaktight.learning.checkpoint import follow, restored, saved

OPTIMISERS = [Sgd(), Sgd(momentum=0.9), Adam()]


def trained(optimiser, steps, start=0, state=None):
    """Train a small layer, from a checkpoint if there is one."""
    torch.manual_seed(0)
    layer = nn.Linear(3, 2)
    moves = optimiser.over(layer.parameters())
    if state is not None:
        restored(layer, moves, state)
    for step in range(start, start + steps):
        moves.zero_grad()
        (layer(torch.full((1, 3), float(step + 1))).square().sum() / 100).backward()
        follow(moves, optimiser, step)
    return layer, moves


@pytest.mark.parametrize("optimiser", OPTIMISERS, ids=str)
def test_going_on_from_a_checkpoint_is_going_on(optimiser):
    whole, _ = trained(optimiser, 6)
    state = saved(*trained(optimiser, 3))
    # As a file would keep it: flat names, empty tables gone.
    resumed, _ = trained(optimiser, 3, start=3, state=unflatten(flatten(state)))
    assert all(torch.equal(one, other) for one, other in zip(whole.parameters(), resumed.parameters(), strict=True))


@pytest.mark.parametrize("optimiser", OPTIMISERS, ids=str)
def test_a_checkpoint_is_a_copy_of_tensors_and_numbers(optimiser):
    layer, moves = trained(optimiser, 2)
    state = saved(layer, moves)
    assert all(isinstance(value, torch.Tensor | float) for value in flatten(state).values())
    before = {name: value.clone() for name, value in state["model"].items()}
    with torch.no_grad():
        layer.weight.add_(1)
    assert all(torch.equal(before[name], state["model"][name]) for name in before)
    restored(layer, moves, state)
    moves.step()
    assert all(torch.equal(before[name], state["model"][name]) for name in before)


def test_a_new_checkpoint_forgets_the_moments_of_the_old_party():
    fresh = saved(*trained(Adam(), 0))
    layer, moves = trained(Adam(), 4)
    restored(layer, moves, fresh)
    assert not moves.state


@pytest.mark.parametrize("change", ["missing", "shape", "more"])
def test_another_model_s_checkpoint_is_refused(change):
    layer, moves = trained(Adam(), 1)
    state = saved(layer, moves)
    if change == "missing":
        del state["model"]["bias"]
    elif change == "shape":
        state["model"]["bias"] = torch.zeros(5)
    else:
        state["model"]["scale"] = torch.zeros(1)
    before = layer.weight.detach().clone()
    with pytest.raises(
        InvalidValue, match=r"The checkpoint must hold the parameters of this model. It differs in `(bias|scale)`"
    ):
        restored(layer, moves, state)
    assert torch.equal(layer.weight, before)


def test_a_step_has_the_size_of_its_round():
    optimiser = DecayedSgd(learning_rate=1.0, rounds=(1, 2))
    weight = torch.zeros(1, requires_grad=True)
    moves, sizes = optimiser.over([weight]), []
    for step in range(3):
        before = weight.item()
        weight.grad = torch.ones(1)
        follow(moves, optimiser, step)
        sizes.append(before - weight.item())
    assert sizes == [1.0, 0.5, 0.25]
