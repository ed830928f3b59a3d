"""What every prior must do, ours and a plugin's."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from leaktight.core import registry
from leaktight.core.errors import InvalidValue
from leaktight.core.task import Batch, Normalise
from leaktight.core.torch_private import trace_graph
from leaktight.priors import Flat, Generic, Prior, Public, TotalVariation
from leaktight.priors.prior import Coordinates
from leaktight.testing.values import check_value

PRIORS = [Flat(), TotalVariation(weight=0.3), Generic(), Public()]
SHAPES = [(1, 8, 8), (3, 32, 32), (3, 17, 9), (2, 12, 12), (1, 64, 64), (3, 1, 5)]
CLASSES = 4


def coordinates_of(prior: Prior, shape: tuple[int, ...], normalise: nn.Module | None = None) -> Coordinates:
    rng = torch.Generator().manual_seed(1)
    public = Batch(torch.rand(40, *shape, generator=rng), torch.arange(40) % (CLASSES - 1))
    return prior.coordinates(shape, normalise or nn.Identity(), public, CLASSES)


def targets_of(count: int) -> Tensor:
    return torch.nn.functional.one_hot(torch.arange(count) % CLASSES, CLASSES).float()


@pytest.mark.parametrize("prior", PRIORS, ids=str)
def test_it_is_a_registered_value(prior: Prior) -> None:
    check_value(prior)
    assert registry.find("prior", prior.kind, Prior) is type(prior)
    assert Prior.model_validate(prior.to_dict()) == prior


def test_an_unknown_kind_is_named_with_the_closest() -> None:
    with pytest.raises(InvalidValue, match=r"There is no prior named `generik`\. Did you mean `generic`\?"):
        Prior.model_validate({"kind": "generik"})


@pytest.mark.parametrize("prior", PRIORS, ids=str)
def test_only_public_needs_public_examples(prior: Prior) -> None:
    assert prior.needs_public == (prior.kind == "public")


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("prior", PRIORS, ids=str)
def test_encode_is_the_inverse_of_decode(prior: Prior, shape: tuple[int, ...]) -> None:
    normalise = Normalise([0.3] * shape[0], [0.2] * shape[0])
    coordinates = coordinates_of(prior, shape, normalise)
    inputs, targets = torch.rand(5, *shape, generator=torch.Generator().manual_seed(0)), targets_of(5)
    z = coordinates.encode(inputs, targets)
    assert z.shape == (5, coordinates.width)
    torch.testing.assert_close(coordinates.decode(z, targets), inputs, rtol=0, atol=1e-5)


@pytest.mark.parametrize("prior", PRIORS, ids=str)
def test_rows_are_mapped_differentiated_and_traced(prior: Prior) -> None:
    coordinates = coordinates_of(prior, (3, 8, 8))
    rows = 0.5 * torch.randn(4, 2, coordinates.width, generator=torch.Generator().manual_seed(0))
    targets = targets_of(8).view(4, 2, CLASSES)

    def objective(z: Tensor, targets: Tensor) -> Tensor:
        inputs = coordinates.decode(z, targets)
        return inputs.sin().sum() + coordinates.penalty(z, inputs)

    mapped = torch.func.vmap(torch.func.grad(objective))
    gradients = trace_graph(mapped, rows, targets)(rows, targets)
    for row, label, gradient in zip(rows, targets, gradients, strict=True):
        leaf = row.clone().requires_grad_()
        objective(leaf, label).backward()
        torch.testing.assert_close(gradient, leaf.grad)


@pytest.mark.parametrize("prior", PRIORS, ids=str)
def test_half_the_squared_length_is_the_penalty_of_whitened_coordinates(prior: Prior) -> None:
    coordinates = coordinates_of(prior, (3, 8, 8))
    z = torch.randn(2, coordinates.width, generator=torch.Generator().manual_seed(0))
    penalty = coordinates.penalty(z, coordinates.decode(z, targets_of(2)))
    assert penalty.shape == ()
    assert coordinates.whitened == (prior.kind in ("generic", "public"))
    assert coordinates.whitened == bool(torch.isclose(penalty, 0.5 * z.square().sum()))


@pytest.mark.parametrize("prior", PRIORS, ids=str)
def test_coordinates_follow_the_precision_of_what_they_are_given(prior: Prior) -> None:
    coordinates = coordinates_of(prior, (1, 8, 8), Normalise([0.5], [0.2]))
    inputs = coordinates.decode(torch.zeros(2, coordinates.width, dtype=torch.float64), targets_of(2))
    assert inputs.dtype == coordinates.encode(inputs, targets_of(2)).dtype == torch.float64


@pytest.mark.parametrize("prior", PRIORS, ids=str)
def test_steps_shorten_coordinates_and_never_lengthen_them(prior: Prior) -> None:
    coordinates = coordinates_of(prior, (3, 8, 8))
    steps = coordinates.steps()
    assert steps.shape == (coordinates.width,)
    assert 0 < steps.min() <= steps.max() <= 1
    assert coordinates.whitened == bool((steps < 1).any())
