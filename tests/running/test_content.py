from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from leaktight.core.random import global_seed, stream
from leaktight.core.scenario import FEW
from leaktight.running.content import digest_response

BATCH = torch.rand(4, 6, generator=stream(0)), torch.tensor([0, 1, 2, 0])


def network(activation: nn.Module | None = None) -> nn.Module:
    with global_seed(0):
        return nn.Sequential(nn.Linear(6, 5), activation or nn.Tanh(), nn.Linear(5, 3))


def ask(model: nn.Module) -> str:
    return digest_response(model, (BATCH[0],), BATCH[1])


class Own(nn.Module):
    """Does what it is told."""

    def __init__(self, run: Any) -> None:
        super().__init__()
        self.run = run

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.run(x)
        return out


class Doubled(torch.autograd.Function):
    """Changes the gradient and nothing else, as native code may."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return 2 * gradient


def test_what_a_model_does_shows_and_nothing_else() -> None:
    before = ask(network())
    assert ask(network()) == before
    assert ask(network(Own(lambda x: torch.tanh(x)))) == before
    assert ask(network(nn.Sigmoid())) != before


def test_a_gradient_that_was_changed_shows_though_the_outputs_are_the_same() -> None:
    changed = network(Own(lambda x: Doubled.apply(x.tanh())))
    assert torch.equal(changed(BATCH[0]), network()(BATCH[0]))
    assert ask(changed) != ask(network())


def test_a_change_of_one_in_ten_thousand_shows_and_rounding_does_not() -> None:
    assert ask(network(Own(lambda x: x.tanh() * (1 + 1e-4)))) != ask(network())
    assert ask(network(Own(lambda x: x.tanh() * (1 + 1e-14)))) == ask(network())


def test_the_environment_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    model = network(Own(lambda x: x.tanh() * float(os.environ.get("OWN_SLOPE", "1"))))
    before = ask(model)
    monkeypatch.setenv("OWN_SLOPE", "2")
    assert ask(model) != before


def test_a_model_for_single_precision_alone_is_asked_in_it() -> None:
    fixed = torch.eye(5)
    model, other = network(Own(lambda x: (x @ fixed).tanh())), network(Own(lambda x: (x @ (2 * fixed)).tanh()))
    with pytest.raises(RuntimeError):
        model.double()(BATCH[0].double())
    model.float()
    assert ask(model) == ask(model) != ask(other)
    assert len(ask(model)) == len(ask(network()))


def test_a_random_model_and_one_that_fails_say_so() -> None:
    rng = np.random.default_rng(0)
    assert ask(network(Own(lambda x: x * float(rng.random())))) == "random"
    assert ask(network(Own(lambda x: x.nothing))) == "failed with AttributeError"


def test_draws_of_torch_are_no_chance() -> None:
    assert ask(network(nn.Dropout())) == ask(network(nn.Dropout())) != "random"


def test_the_model_stays_as_it_was() -> None:
    with global_seed(0):
        model = nn.Sequential(nn.Linear(6, 5), nn.BatchNorm1d(5), nn.Linear(5, 3))
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    state = torch.random.get_rng_state()
    assert len(ask(model)) == len(ask(network()))
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert torch.equal(torch.random.get_rng_state(), state)
    assert all(parameter.grad is None for parameter in model.parameters())


def test_numbers_that_are_not_finite_are_no_error() -> None:
    assert ask(network(Own(lambda x: x / 0))) != ask(network())


def test_two_threads_and_one_agree() -> None:
    with global_seed(0):
        wide = nn.Sequential(nn.Linear(6, 3000), nn.Tanh(), nn.Linear(3000, 3000), nn.Tanh(), nn.Linear(3000, 3))
    threads, found = torch.get_num_threads(), set()
    try:
        for count in (1, 2):
            torch.set_num_threads(count)
            found.add(ask(wide))
    finally:
        torch.set_num_threads(threads)
    assert len(found) == 1
    assert len(BATCH[0]) == FEW
