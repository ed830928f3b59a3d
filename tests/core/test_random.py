"""Named streams: reproducible, independent, and the global generator stays as it was."""

import torch

from leaktight.core.random import global_seed, normal_like, stream, uniform_like


def test_a_name_is_a_stream():
    first, same, other = (torch.rand(4, generator=stream(0, *names)) for names in (("a", 1), ("a", 1), ("a", 2)))
    assert torch.equal(first, same)
    assert not torch.equal(first, other)


def test_names_do_not_run_together():
    assert not torch.equal(torch.rand(4, generator=stream(0, "ab", "c")), torch.rand(4, generator=stream(0, "a", "bc")))


def test_sealed_restores_the_global_generator():
    before = torch.random.get_rng_state()
    with global_seed(3):
        inside = torch.rand(2)
    assert torch.equal(before, torch.random.get_rng_state())
    with global_seed(3):
        assert torch.equal(inside, torch.rand(2))


def test_noise_has_the_tensor_s_form():
    like = torch.zeros(2, 3, dtype=torch.float64)
    for draw in (normal_like, uniform_like):
        noise = draw(like, stream(0))
        assert noise.shape == like.shape
        assert noise.dtype == like.dtype
