"""Local steps go as torch's optimisers go, gradient by gradient."""

import math

import pytest
import torch

from leaktight.attacks.local_steps import LocalSteps
from leaktight.core.channel import Noise

NAMES = {"weight": (3, 2), "bias": (4,), "scale": ()}


def gradients(step: int) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(step)
    return {name: torch.randn(shape, generator=generator, dtype=torch.float64) for name, shape in NAMES.items()}


def walked(steps: LocalSteps) -> dict[str, torch.Tensor]:
    place = {name: torch.ones(shape, dtype=torch.float64) for name, shape in NAMES.items()}
    moments = steps.moments(place)
    for step in range(1, steps.count + 1):
        moves, moments = steps.move(steps.decay(gradients(step), place), moments, step)
        place = {name: tensor + moves[name] for name, tensor in place.items()}
    return place


def by_torch(steps: LocalSteps) -> dict[str, torch.Tensor]:
    leaves = {name: torch.ones(shape, dtype=torch.float64, requires_grad=True) for name, shape in NAMES.items()}
    settings = {"lr": steps.learning_rate, "weight_decay": steps.weight_decay}
    optimiser = (
        torch.optim.Adam(leaves.values(), **settings)
        if steps.adaptive
        else torch.optim.SGD(leaves.values(), momentum=steps.momentum, **settings)
    )
    for step in range(1, steps.count + 1):
        for name, slope in gradients(step).items():
            leaves[name].grad = slope
        optimiser.step()
    return {name: leaf.detach() for name, leaf in leaves.items()}


@pytest.mark.parametrize(
    "steps",
    [
        LocalSteps(5, 0.1),
        LocalSteps(6, 0.2, momentum=0.9),
        LocalSteps(7, 0.01, adaptive=True),
        LocalSteps(1, 0.3, adaptive=True),
        LocalSteps(5, 0.1, momentum=0.5, weight_decay=0.3),
        LocalSteps(5, 0.01, adaptive=True, weight_decay=0.3),
    ],
    ids=["sgd", "momentum", "adam", "one step of adam", "weight decay", "adam with weight decay"],
)
def test_steps_go_as_torch_takes_them(steps):
    found, wanted = walked(steps), by_torch(steps)
    for name in NAMES:
        assert torch.allclose(found[name], wanted[name], rtol=1e-9, atol=1e-12)


def test_a_step_of_adam_has_a_finite_slope_also_at_zero():
    def moved(gradient):
        steps = LocalSteps(1, 0.1, adaptive=True)
        return steps.move({"weight": gradient}, steps.moments({"weight": gradient}), 1)[0]["weight"].sum()

    for gradient in (torch.zeros(3), torch.tensor([1e-12, -1.0, 1e6])):
        assert torch.func.grad(moved)(gradient).isfinite().all()


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_steps_along_one_gradient_are_its_average_move(momentum):
    steps = LocalSteps(4, 0.2, momentum)
    place, moments = torch.zeros(3), steps.moments({"weight": torch.zeros(3)})
    slope = torch.tensor([1.0, -2.0, 0.5])
    for step in range(1, 5):
        moves, moments = steps.move({"weight": slope}, moments, step)
        place = place + moves["weight"]
    assert torch.allclose(steps.average_move({"weight": slope})["weight"], place)


def test_the_average_move_of_adam_is_a_step_of_the_learning_rate_each_time():
    move = LocalSteps(4, 0.01, adaptive=True).average_move({"weight": torch.tensor([3.0, -2.0, 0.0])})["weight"]
    assert move.tolist() == pytest.approx([-0.04, 0.04, 0.0], abs=1e-3)


@pytest.mark.parametrize("momentum", [0.0, 0.5, 0.9])
def test_noise_on_a_step_comes_into_the_update_by_its_weight(momentum):
    """The update is linear in the gradients of its steps: a weight is what one unit on one step moves."""
    steps = LocalSteps(4, 0.1, momentum)
    for place in range(4):
        law = steps.noise(Noise(variance=4.0), torch.zeros(1), place + 1)
        moments, total = steps.moments({"weight": torch.zeros(1)}), torch.zeros(1)
        for step in range(4):
            moves, moments = steps.move({"weight": torch.tensor([float(step == place)])}, moments, step + 1)
            total = total + moves["weight"]
        assert law.variance == pytest.approx(4 * total.item() ** 2)


@pytest.mark.parametrize("ratio", [0.1, 1.0, 10.0])
def test_noise_that_adam_sees_moves_a_parameter_by_little_more_than_its_law(ratio):
    """A law that is too narrow would be believed; noise far above the gradient moves by the learning rate."""
    steps, gradient = LocalSteps(4, 0.01, adaptive=True), torch.full((20_000,), 0.001)
    std = ratio * 0.001
    draws, total = torch.Generator().manual_seed(0), torch.zeros_like(gradient)
    moments, law = steps.moments({"weight": gradient}), Noise()
    for step in range(1, 5):
        seen = gradient + std * torch.randn(len(gradient), generator=draws)
        moves, moments = steps.move({"weight": seen}, moments, step)
        total = total + moves["weight"]
        law = law + steps.noise(Noise(variance=std**2), gradient, step)
    assert law.approximate
    stated = torch.as_tensor(law.variance).mean().sqrt().item()
    # Momentum carries the noise of one step into the next, which the law leaves out.
    assert total.std().item() < 1.25 * stated
    assert stated < 1.01 * 0.01 * math.sqrt(4) * min(1.0, ratio)


def test_every_step_has_its_examples_whatever_their_number():
    for count, examples in ((6, 100), (4, 9), (4, 8), (3, 3), (5, 7)):
        batches = LocalSteps(count).split(torch.arange(examples))
        assert len(batches) == count
        assert torch.equal(torch.cat(batches), torch.arange(examples))


def test_facts_are_read_with_their_defaults():
    assert LocalSteps.of({}) == LocalSteps()
    facts = {"local_steps": 3.0, "learning_rate": 0.1, "momentum": 0.9, "adaptive": 1.0}
    assert LocalSteps.of(facts) == LocalSteps(3, 0.1, 0.9, True)
