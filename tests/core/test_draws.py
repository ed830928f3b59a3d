"""Large draws: normal, independent, and the same whoever draws them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from scipy import stats

from leaktight.core.draws import BLOCK, Draws, SeededDraws
from leaktight.core.random import stream
from leaktight.core.secure import SecretKey

SECRET = SecretKey(bytes(range(32)))


def seeded(seed: int) -> Draws:
    return SeededDraws(stream(seed))


def secure(seed: int) -> Draws:
    return SECRET.derive(seed).draws()


BOTH = pytest.mark.parametrize("draws", [seeded, secure])
Make = Callable[[int], Draws]


def test_a_small_draw_is_the_stream_itself() -> None:
    wanted = torch.randn(4, 5, generator=stream(0))
    assert torch.equal(seeded(0).many_normals((4, 5), torch.zeros(1)), wanted)
    assert torch.equal(seeded(0).many_normals((4, 5), torch.zeros(1).double()), wanted.double())


@BOTH
def test_a_large_draw_is_normal_and_its_blocks_differ(draws: Make) -> None:
    drawn = draws(0).many_normals((3 * BLOCK // 128 + 5, 128), torch.zeros(1))
    assert stats.kstest(drawn.flatten()[: 4 * BLOCK].numpy()[::5], "norm").pvalue > 0.01
    blocks = drawn.flatten()[: 3 * BLOCK].view(3, BLOCK)
    assert torch.corrcoef(blocks).sub(torch.eye(3)).abs().max() < 0.01


@BOTH
def test_a_large_draw_is_the_same_for_any_number_of_threads(draws: Make) -> None:
    threads = torch.get_num_threads()
    try:
        drawn = []
        for count in (1, 3):
            torch.set_num_threads(count)
            drawn.append(draws(1).many_normals((2 * BLOCK + 7,), torch.zeros(1)))
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(*drawn)


@BOTH
def test_draws_follow_one_another_on_the_stream(draws: Make) -> None:
    own = draws(2)
    one, other = own.many_normals((2 * BLOCK,), torch.zeros(1)), own.many_normals((2 * BLOCK,), torch.zeros(1))
    assert not torch.equal(one, other)
    assert abs(torch.corrcoef(torch.stack([one, other]))[0, 1].item()) < 0.01


@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (BLOCK,), (BLOCK + 1,)])
@BOTH
def test_shapes(draws: Make, shape: tuple[int, ...]) -> None:
    assert draws(0).many_normals(shape, torch.zeros(1)).shape == shape


@BOTH
def test_the_global_generator_is_not_touched(draws: Make) -> None:
    before = torch.random.get_rng_state()
    draws(0).many_normals((2 * BLOCK,), torch.zeros(1))
    assert torch.equal(before, torch.random.get_rng_state())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("dimensions", [1, 7, 128, BLOCK + 3])
@BOTH
def test_noise_falls_on_the_chosen_rows_only(draws: Make, dtype: torch.dtype, dimensions: int) -> None:
    count = max(4, 3 * BLOCK // dimensions)
    matrix = torch.ones(count, dimensions, dtype=dtype)
    places = torch.arange(0, count, 3)
    draws(0).add_normals(matrix, places, 0.5)
    chosen = torch.zeros(count, dtype=torch.bool).index_fill(0, places, True)
    assert torch.equal(matrix[~chosen], torch.ones_like(matrix[~chosen]))
    noise = (matrix[chosen] - 1).double().flatten() / 0.5
    assert noise.std().item() == pytest.approx(1.0, rel=0.02)
    assert stats.kstest(noise.numpy(), "norm").pvalue > 0.01


@BOTH
def test_noise_on_rows_is_the_same_for_any_number_of_threads(draws: Make) -> None:
    threads, places = torch.get_num_threads(), torch.arange(2000)
    found = []
    try:
        for count in (1, 3):
            torch.set_num_threads(count)
            found.append(torch.zeros(2000, 128))
            draws(3).add_normals(found[-1], places, 1.0)
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(*found)
    assert len(torch.unique(found[0])) > 0.98 * found[0].numel()


@BOTH
def test_no_rows_get_no_noise(draws: Make) -> None:
    matrix = torch.ones(3, 2)
    draws(0).add_normals(matrix, torch.zeros(0, dtype=torch.long), 1.0)
    assert torch.equal(matrix, torch.ones(3, 2))
