from __future__ import annotations

import numpy as np
import pytest
import torch

from leaktight.priors.moments import FLOOR, Moments, Shrinkage, class_means, leading_directions, remainder, variances_of


@pytest.mark.parametrize(("count", "width"), [(30, 8), (8, 30), (12, 12)])
def test_the_leading_directions_are_those_of_the_covariance(count: int, width: int) -> None:
    deviations = torch.randn(count, width, generator=torch.Generator().manual_seed(0))
    directions, variances = leading_directions(deviations, 5)
    values, vectors = np.linalg.eigh((deviations.T @ deviations / count).double().numpy())
    np.testing.assert_allclose(variances, values[::-1][:5], rtol=1e-4)
    np.testing.assert_allclose(np.abs(np.diag(vectors[:, ::-1][:, :5].T @ directions.double().numpy())), 1, atol=1e-3)
    np.testing.assert_allclose(directions.T @ directions, np.eye(5), atol=1e-5)


def test_directions_without_variance_do_not_lead() -> None:
    deviations = torch.randn(20, 2, generator=torch.Generator().manual_seed(0)) @ torch.eye(2, 9)
    directions, variances = leading_directions(deviations, 9)
    assert directions.shape == (9, 2)
    assert len(variances) == 2


def test_no_direction_leads_where_none_may() -> None:
    directions, variances = leading_directions(torch.randn(20, 9, generator=torch.Generator().manual_seed(0)), 0)
    assert directions.shape == (9, 0)
    assert variances.shape == (0,)


def test_class_means_are_drawn_towards_the_mean_of_all() -> None:
    points, labels = torch.tensor([[0.0], [2.0], [7.0], [3.0]]), torch.tensor([0, 0, 1, 1])
    assert class_means(points, labels, 2, 2.0).flatten().tolist() == [2.0, 4.0]


def test_a_variance_never_falls_below_the_floor() -> None:
    assert variances_of(torch.zeros(5, 3), 0.0).tolist() == pytest.approx([FLOOR] * 3)


def test_the_rest_is_the_mean_variance_of_the_other_directions() -> None:
    assert remainder(torch.tensor(10.0), torch.tensor(4.0), 5, 2) == 2.0
    assert remainder(torch.tensor(10.0), torch.tensor(10.0), 5, 5) == 2.0


def test_without_shrinkage_the_covariance_is_that_of_the_points() -> None:
    rng = torch.Generator().manual_seed(0)
    points, labels = torch.randn(200, 6, generator=rng) @ torch.randn(6, 6, generator=rng), torch.arange(200) % 2
    moments = Moments.of(points, labels, 2, Shrinkage())
    deviations = points - torch.stack([points[labels == label].mean(0) for label in (0, 1)])[labels]
    inner = (
        moments.rest * torch.eye(6)
        + moments.directions @ torch.diag(moments.variances - moments.rest) @ moments.directions.T
    )
    covariance = moments.scales[:, None] * inner * moments.scales
    torch.testing.assert_close(covariance, deviations.T @ deviations / 200, rtol=0, atol=0.05)


def test_full_shrinkage_of_directions_leaves_one_variance() -> None:
    points = torch.randn(50, 6, generator=torch.Generator().manual_seed(0))
    moments = Moments.of(points, torch.zeros(50, dtype=torch.long), 1, Shrinkage(directions=1.0, rest=0.5))
    assert moments.variances.tolist() == pytest.approx([0.5] * 6)
