"""Key theory: Eq.

6 to 9 and Appendix A of the paper by closed form and by Monte Carlo, and how random keys lie to each other.
"""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from leaktight.core.draws import SeededDraws
from leaktight.core.errors import InvalidValue
from leaktight.core.random import stream
from leaktight.defences.embedding import FixedLayer
from leaktight.defences.key_theory import (
    closest,
    effective_length,
    expected_exponential,
    image_overlap,
    key_at_distance,
    largest_overlap,
    orthonormal_keys,
    random_keys,
)

DRAWS = 200_000


def embedding(dimensions: int, length: float = 1.0) -> Tensor:
    return length * random_keys(1, dimensions, SeededDraws(stream(0, "embedding")))[0].double()


def sampled(phi: Tensor, normalised: bool) -> tuple[float, float]:
    """Return the mean of exp<phi, psi> over random keys, and its standard error."""
    rng = stream(0, "keys", len(phi))
    keys = random_keys(DRAWS, len(phi), SeededDraws(rng)) if normalised else torch.randn(DRAWS, len(phi), generator=rng)
    values = (keys.double() @ phi).exp()
    return values.mean().item(), values.std().item() / math.sqrt(DRAWS)


@pytest.mark.parametrize("dimensions", [2, 8, 32])
def test_the_expectation_is_the_root_of_e_for_embeddings_of_length_one(dimensions: int) -> None:
    mean, error = sampled(embedding(dimensions), normalised=False)
    assert expected_exponential(1.0) == pytest.approx(math.exp(0.5))
    assert mean == pytest.approx(math.exp(0.5), abs=4 * error)
    assert error < 0.01


@pytest.mark.parametrize("length", [0.0, 0.5, 1.5])
def test_for_other_lengths_it_is_that_of_appendix_a(length: float) -> None:
    mean, error = sampled(embedding(8, length), normalised=False)
    assert mean == pytest.approx(math.exp(length**2 / 2), abs=4 * error + 1e-9)
    assert expected_exponential(length) == pytest.approx(math.exp(length**2 / 2))


def test_each_dimension_integrates_to_the_exponential_of_half_its_square() -> None:
    # Eq. A.5 to A.7 for one dimension, by the trapezoid rule.
    value = 0.7
    psi = torch.linspace(-12, 12, 20_001, dtype=torch.float64)
    density = (-0.5 * psi.square()).exp() / math.sqrt(2 * math.pi)
    assert torch.trapezoid(density * (value * psi).exp(), psi).item() == pytest.approx(
        math.exp(0.5 * value**2), rel=1e-9
    )


@pytest.mark.parametrize("dimensions", [2, 8, 32])
def test_keys_of_length_one_have_a_constant_expectation_too(dimensions: int) -> None:
    mean, error = sampled(embedding(dimensions), normalised=True)
    assert mean == pytest.approx(expected_exponential(1.0, dimensions), abs=4 * error)


def test_in_many_dimensions_keys_of_length_one_and_gaussian_ones_agree_at_the_paper_s_scale() -> None:
    # A key of length 1 times sqrt(d) is as long as a Gaussian one.
    assert expected_exponential(math.sqrt(4096), 4096) == pytest.approx(math.exp(0.5), rel=1e-3)


def test_the_direction_of_an_embedding_does_not_matter() -> None:
    one, other = torch.eye(8, dtype=torch.float64)[0], embedding(8)
    (first, error), (second, _) = sampled(one, normalised=False), sampled(other, normalised=False)
    assert first == pytest.approx(second, abs=6 * error)


def test_the_likelihood_of_eq_6_gives_the_losses_of_eq_8_and_9() -> None:
    phi = F.normalize(torch.randn(5, 16, generator=stream(1), dtype=torch.float64), dim=1)
    key = torch.randn(16, generator=stream(2), dtype=torch.float64)
    scores = phi @ key
    likelihood = scores.exp() / expected_exponential(1.0)  # Eq. 6 with A.13
    with_lengths = -scores + 0.5 * phi.square().sum(1)  # Eq. 8
    torch.testing.assert_close(-likelihood.log(), with_lengths)
    # Eq. 9 drops the constant one half.
    torch.testing.assert_close(-likelihood.log() - 0.5, -scores)


def test_the_weight_one_half_keeps_embeddings_that_are_not_normalised_from_growing() -> None:
    # Eq. 8 has its least value where the embedding is the key: neither at zero nor far away.
    key = torch.tensor([2.0, -1.0], dtype=torch.float64)
    phi = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    steps = torch.optim.SGD([phi], lr=0.2)
    for _ in range(100):
        steps.zero_grad()
        (-phi @ key + 0.5 * phi.square().sum()).backward()  # type: ignore[no-untyped-call]
        steps.step()
    torch.testing.assert_close(phi.detach(), key)


@pytest.mark.parametrize("dimensions", [2, 64, 1024])
def test_keys_overlap_as_much_as_theory_says(dimensions: int) -> None:
    keys, repeats = 100, 60
    found = []
    for number in range(repeats):
        drawn = random_keys(keys, dimensions, SeededDraws(stream(0, "overlap", number)))
        found.append((drawn @ drawn.t()).fill_diagonal_(-2).max().item())
    pairs = keys * (keys - 1) // 2
    low, high = (largest_overlap(dimensions, pairs, level) for level in (0.25, 0.75))
    inside = sum(low <= value <= high for value in found)
    # Half of the draws belong between the quartiles; four standard deviations of a binomial either way.
    assert abs(inside - repeats / 2) <= 4 * math.sqrt(repeats) / 2


def test_two_keys_overlap_by_one_over_the_root_of_their_dimensions() -> None:
    keys = random_keys(20, 4096, SeededDraws(stream(0)))
    torch.testing.assert_close(keys.norm(dim=1), torch.ones(20))
    overlaps = (keys @ keys.t())[~torch.eye(20, dtype=torch.bool)]
    assert overlaps.std().item() == pytest.approx(1 / 64, rel=0.25)
    assert overlaps.abs().max() < 5 / 64


@pytest.mark.parametrize(("dimensions", "features"), [(128, 256), (1024, 64), (4096, 64)])
def test_what_a_generator_follows_overlaps_as_theory_says(dimensions: int, features: int) -> None:
    draws = SeededDraws(stream(0, dimensions))
    layer, inputs = FixedLayer(features, dimensions, seed=0), draws.normals((20, features))
    keys = random_keys(60, dimensions, draws)
    slopes = [layer.tangents(inputs, key[None], torch.ones(len(inputs), 1))[1] for key in keys]
    units = F.normalize(torch.stack(slopes), dim=2)
    squares = torch.einsum("kif,lif->kli", units, units).square()[~torch.eye(len(keys), dtype=torch.bool)]
    assert squares.mean().sqrt().item() == pytest.approx(image_overlap(dimensions, features), rel=0.15)


def test_beyond_as_many_dimensions_as_features_longer_keys_hardly_help() -> None:
    short, equal, long = (image_overlap(dimensions, 256) for dimensions in (64, 1024, 65_536))
    assert short > 2 * equal
    assert long > 0.85 * equal
    assert (effective_length(64, 256), effective_length(65_536, 256)) == (64, 256)


def test_a_learned_layer_has_no_shorter_effective_length() -> None:
    assert effective_length(4096, features=84, fixed=False) == 4096


@pytest.mark.parametrize(("count", "dimensions"), [(10, 10), (3, 128)])
def test_orthonormal_keys_are_at_right_angles(count: int, dimensions: int) -> None:
    keys = orthonormal_keys(count, dimensions, SeededDraws(stream(0)))
    torch.testing.assert_close(keys @ keys.t(), torch.eye(count), atol=1e-5, rtol=0)


def test_more_dimensions_overlap_less_and_more_pairs_more() -> None:
    overlaps = [largest_overlap(2**power, pairs=4950 * 1000) for power in range(1, 15)]
    assert overlaps == sorted(overlaps, reverse=True)
    assert overlaps[0] == pytest.approx(1, abs=1e-6)
    assert largest_overlap(64, pairs=10) < largest_overlap(64, pairs=1000)
    assert largest_overlap(64, level=0.5) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("distance", [0.1, 0.5, 1.0, 1.3, math.sqrt(2), 2.0])
def test_a_key_at_a_distance_has_length_one_and_is_exactly_that_far(distance: float) -> None:
    [key] = random_keys(1, 512, SeededDraws(stream(0)))
    found = key_at_distance(key, distance, SeededDraws(stream(0, "away")))
    assert found.norm().item() == pytest.approx(1, abs=1e-5)
    assert (found - key).norm().item() == pytest.approx(distance, abs=1e-4)
    assert (found @ key).item() == pytest.approx(1 - distance**2 / 2, abs=1e-4)


def test_keys_at_a_distance_lie_in_random_directions() -> None:
    [key] = random_keys(1, 512, SeededDraws(stream(0)))
    one, same, other = (key_at_distance(key, 1.0, SeededDraws(stream(0, name))) for name in ("a", "a", "b"))
    assert torch.equal(one, same)
    across = [found - (found @ key) * key for found in (one, other)]
    assert abs(F.cosine_similarity(*across, dim=0).item()) < 0.2
    torch.testing.assert_close(key_at_distance(key, 0.0, SeededDraws(stream(0))), key)


@pytest.mark.parametrize("distance", [-0.1, 2.1])
def test_keys_of_length_one_are_at_most_two_apart(distance: float) -> None:
    with pytest.raises(InvalidValue, match=r"The distance of two keys must be in \[0, 2\]"):
        key_at_distance(torch.ones(1), distance, SeededDraws(stream(0)))


@pytest.mark.parametrize("dimensions", [64, 4096])
def test_no_descent_finds_a_better_place_for_a_shared_class_than_the_normalised_sum(dimensions: int) -> None:
    keys = random_keys(2, dimensions, SeededDraws(stream(0, "shared")))
    place = random_keys(1, dimensions, SeededDraws(stream(0, "start")))[0].requires_grad_(True)
    steps = torch.optim.SGD([place], lr=1.0)
    for _ in range(200):
        steps.zero_grad()
        (-(keys @ F.normalize(place, dim=0)).sum()).backward()  # type: ignore[no-untyped-call]
        steps.step()
    found = F.normalize(place.detach(), dim=0)
    torch.testing.assert_close(found, closest(keys), atol=1e-3, rtol=0)
    scores = keys @ closest(keys)
    expected = math.sqrt((1 + (keys[0] @ keys[1]).item()) / 2)
    assert scores.tolist() == pytest.approx([expected, expected], abs=1e-5)
    assert expected == pytest.approx(math.sqrt(0.5), abs=3 / math.sqrt(dimensions))
