from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
import torch
from torch import Tensor, nn

from leaktight.core.errors import Refusal
from leaktight.core.task import Batch
from leaktight.data import Digits
from leaktight.priors import Coordinates, Generic, Public
from leaktight.priors.public import LEAST


def one_hot(labels: Tensor, classes: int) -> Tensor:
    return torch.nn.functional.one_hot(labels, classes).float()


def law_of(coordinates: Coordinates, target: Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and covariance of what is decoded from standard normal numbers."""
    width = coordinates.width
    mean = coordinates.decode(torch.zeros(1, width, dtype=torch.float64), target[None]).flatten()
    columns = coordinates.decode(torch.eye(width, dtype=torch.float64), target.expand(width, -1)).flatten(1) - mean
    return mean.numpy(), (columns.T @ columns).numpy()


def table(count: int) -> tuple[Batch, Tensor, Tensor]:
    """Return rows of two classes with a known law: the batch, the class means, the covariance."""
    rng = torch.Generator().manual_seed(3)
    means, factor = 2 * torch.randn(2, 6, generator=rng), 0.5 * torch.randn(6, 6, generator=rng)
    labels = torch.randint(2, (count,), generator=rng)
    inputs = means[labels] + torch.randn(count, 6, generator=rng) @ factor.T
    return Batch(inputs, labels), means, factor @ factor.T


def test_many_examples_bring_the_law_that_they_were_drawn_from() -> None:
    public, means, covariance = table(20_000)
    coordinates = Public().coordinates((6,), nn.Identity(), public, 2)
    for label in (0, 1):
        mean, seen = law_of(coordinates, one_hot(torch.tensor(label), 2))
        np.testing.assert_allclose(mean, means[label], atol=0.05)
        np.testing.assert_allclose(seen, covariance, atol=0.05 * covariance.abs().max().item())


def test_the_penalty_is_minus_the_gaussian_log_density() -> None:
    public = Digits().load().train.take(torch.arange(300))
    coordinates = Public().coordinates((1, 8, 8), nn.Identity(), public, 10)
    law = scipy.stats.multivariate_normal(*law_of(coordinates, one_hot(torch.tensor(3), 10)))
    inputs, targets = public.inputs[:4].double(), one_hot(torch.full((4,), 3), 10)
    z = coordinates.encode(inputs, targets)
    penalties = np.array(
        [coordinates.penalty(one[None], image[None]).item() for one, image in zip(z, inputs, strict=True)]
    )
    constant = penalties + law.logpdf(inputs.flatten(1).numpy())
    np.testing.assert_allclose(constant, constant[0], atol=1e-2)


@pytest.mark.parametrize("count", [LEAST, 40, 200, 1200])
def test_held_out_examples_are_likelier_than_under_generic(count: int) -> None:
    data = Digits().load()
    public, test = data.train.take(torch.arange(count)), data.test
    targets = one_hot(test.labels, 10)

    def log_likelihood(coordinates: Coordinates) -> float:
        _, covariance = law_of(coordinates, targets[0])
        z = coordinates.encode(test.inputs.double(), targets)
        return float(-0.5 * z.square().sum(1).mean() - 0.5 * np.linalg.slogdet(covariance)[1])

    own = Public().coordinates((1, 8, 8), nn.Identity(), public, 10)
    generic = Generic().coordinates((1, 8, 8), nn.Identity(), None, 10)
    assert log_likelihood(own) > log_likelihood(generic)


def test_a_class_has_its_mean_and_one_without_examples_that_of_all() -> None:
    rng = torch.Generator().manual_seed(0)
    labels = torch.arange(3000) % 2
    public = Batch(torch.randn(3000, 5, generator=rng) + 3 * labels[:, None], labels)
    coordinates = Public().coordinates((5,), nn.Identity(), public, 4)
    targets = torch.cat([torch.eye(4), torch.tensor([[0.5, 0.5, 0.0, 0.0]])])
    means = coordinates.decode(torch.zeros(5, 5), targets)
    expected = torch.tensor([0.0, 3.0, 1.5, 1.5, 1.5])[:, None].expand(5, 5)
    torch.testing.assert_close(means, expected, rtol=0, atol=0.1)


def test_without_class_means_labels_say_nothing() -> None:
    public, _, _ = table(200)
    coordinates = Public(class_means=False).coordinates((6,), nn.Identity(), public, 2)
    first, second = coordinates.decode(torch.zeros(2, 6), torch.eye(2))
    assert torch.equal(first, second)
    torch.testing.assert_close(first, public.inputs.mean(0), rtol=0, atol=1e-4)


def test_labels_without_meaning_bring_class_means_that_are_nearly_one() -> None:
    rng = torch.Generator().manual_seed(0)
    public = Batch(torch.randn(200, 30, generator=rng), torch.randint(5, (200,), generator=rng))
    means = Public().coordinates((30,), nn.Identity(), public, 5).decode(torch.zeros(5, 30), torch.eye(5))
    raw = torch.stack([public.inputs[public.labels == label].mean(0) for label in range(5)])
    assert means.std(0).mean() < 0.3 * raw.std(0).mean()


@pytest.mark.parametrize("shape", [(3, 24, 24), (1, 16, 11)], ids=str)
def test_few_examples_of_many_pixels_leave_a_density_for_every_image(shape: tuple[int, ...]) -> None:
    rng = torch.Generator().manual_seed(0)
    patterns = torch.rand(3, *shape, generator=rng)
    inputs = torch.einsum("nk,kchw->nchw", torch.rand(60, 3, generator=rng), patterns) / 2
    coordinates = Public().coordinates(shape, nn.Identity(), Batch(inputs, torch.zeros(60, dtype=torch.long)), 2)
    image, target = torch.rand(1, *shape, generator=rng), torch.tensor([[1.0, 0.0]])
    z = coordinates.encode(image, target)
    torch.testing.assert_close(coordinates.decode(z, target), image, rtol=0, atol=1e-4)
    # An image of the family is far likelier than any other.
    assert coordinates.encode(inputs[:1], target).square().mean() < 0.1 * z.square().mean()


def test_a_number_that_never_changes_keeps_a_little_variance() -> None:
    public, _, _ = table(100)
    public = Batch(torch.cat([public.inputs, torch.ones(100, 1)], 1), public.labels)
    coordinates = Public().coordinates((7,), nn.Identity(), public, 2)
    _, covariance = law_of(coordinates, torch.tensor([1.0, 0.0]))
    assert 0 < covariance[6, 6] < 0.1


def test_the_same_examples_bring_the_same_coordinates() -> None:
    public = Digits().load().train.take(torch.arange(100))
    inputs, targets = public.inputs[:3], one_hot(public.labels[:3], 10)
    first, second = (
        Public().coordinates((1, 8, 8), nn.Identity(), public, 10).encode(inputs, targets) for _ in range(2)
    )
    assert torch.equal(first, second)


def test_too_few_examples_are_refused() -> None:
    public, _, _ = table(LEAST - 1)
    with pytest.raises(
        Refusal, match=r"needs at least 10 public examples\. Got 9 instead; grant more, or take `generic`\."
    ):
        Public().coordinates((6,), nn.Identity(), public, 2)
    with pytest.raises(Refusal, match="Got 0 instead"):
        Public().coordinates((6,), nn.Identity(), None, 2)


def test_examples_of_another_shape_are_refused() -> None:
    public, _, _ = table(20)
    with pytest.raises(Refusal, match=r"needs public examples of shape \(1, 2, 3\). Got \(6,\) instead"):
        Public().coordinates((1, 2, 3), nn.Identity(), public, 2)
