"""Secure draws: nobody can draw them again, and they have the laws that they say."""

from __future__ import annotations

import pickle

import pytest
import torch
from scipy import stats
from torch import nn

from leaktight.core.defence import Chain, bind_key
from leaktight.core.errors import InvalidValue, LeaktightError
from leaktight.core.local import Local
from leaktight.core.message import Kind, Message
from leaktight.core.random import seed_of
from leaktight.core.secure import KEY_BYTES, SecretKey
from leaktight.defences import GaussianNoise

KEY = SecretKey(bytes(range(32)))
BITS = 16
"""How many bits the brute force tries; 32, as torch's seeds have, take a minute of a faster language."""


def sent(local: Local) -> torch.Tensor:
    message = Message(Kind.UPDATE, "client-0", "server", 0, {"weight": torch.zeros(16)})
    return GaussianNoise(std=1.0).on_message(message, local).tensors["weight"]


def brute_force(noise: torch.Tensor, near: int) -> int | None:
    """Return the seed, among 2^BITS that agree with one in their upper bits, whose stream is this noise; None if there is none."""
    rng = torch.Generator()
    first = (near >> BITS) << BITS
    tries = range(first, first + 2**BITS)
    return next(
        (s for s in tries if torch.allclose(torch.randn(16, generator=rng.manual_seed(s)), noise, atol=1e-5)), None
    )


def test_a_stream_of_few_bits_is_found_and_ours_is_not() -> None:
    """What an attacker does: try every seed against a few entries of an update whose gradient is zero there.

    A seeded party draws from 63 bits of which torch uses 32, so that 2^32 tries find it; here 16 of them are known.
    """
    seed = seed_of(7, "client-0", -1) & 0xFFFFFFFF
    assert brute_force(sent(Local("client-0", seed=7)), seed) == seed
    assert brute_force(sent(Local("client-0", seed=7, key=KEY)), seed) is None


def test_even_who_knows_all_but_sixteen_bits_of_a_key_must_try_them() -> None:
    """The counterpart: the search does find a key of which so much is known. Ours has 256 bits that are not."""
    noise = sent(Local("client-0", seed=0, key=KEY))
    known = bytes(range(32))[:30]
    tries = (bytes([*known, high, low]) for high in (29, 30) for low in range(256))
    assert [key for key in tries if torch.equal(sent(Local("client-0", seed=0, key=SecretKey(key))), noise)] == [
        bytes(range(32))
    ]


def test_keys_that_agree_in_their_low_bits_draw_differently() -> None:
    """torch draws the same from seeds whose low 32 bits agree; every bit of a key counts."""
    low = torch.Generator().manual_seed(777), torch.Generator().manual_seed(777 + (12_345 << 32))
    assert torch.equal(*(torch.randn(4, generator=rng) for rng in low))
    content = bytearray(range(32))
    for place in (0, 15, 27):
        changed = bytearray(content)
        changed[place] ^= 1
        for one, other in zip((SecretKey(bytes(changed)), KEY), (KEY, SecretKey(bytes(changed))), strict=True):
            assert not torch.isclose(one.draws().normals((8,)), other.draws().normals((8,))).any()


def test_numbers_depend_on_party_round_scope_and_settings() -> None:
    def draw_noise(party: str = "a", round: int = 0, scope: str = "x", std: float = 1.0) -> torch.Tensor:
        local = Local(party, seed=0, key=bind_key(KEY, party, GaussianNoise(std=std)))
        local.begin(round)
        return local.scope(scope).draws.normals((4,))

    first = draw_noise()
    assert torch.equal(first, draw_noise())
    for other in (draw_noise(party="b"), draw_noise(round=1), draw_noise(scope="y"), draw_noise(std=2.0)):
        assert not torch.isclose(first, other).any()


def test_the_seed_means_nothing_where_there_is_a_key() -> None:
    one, other = (Local("a", seed=seed, key=KEY).draws.normals((4,)) for seed in (0, 1))
    assert torch.equal(one, other)


def test_what_lasts_is_the_same_in_every_round_and_other_than_the_rounds() -> None:
    local = Local("a", seed=0, key=KEY)
    first = local.fixed_draws("class_keys", "keys").normals((4,))
    local.begin(5)
    assert torch.equal(first, local.fixed_draws("class_keys", "keys").normals((4,)))
    assert not torch.isclose(first, local.fixed_draws("class_keys", "codes").normals((4,))).any()
    assert not torch.isclose(first, local.draws.normals((4,))).any()
    assert not torch.isclose(local.draws.normals((4,)), local.fork("scored", 5).draws.normals((4,))).any()


def test_names_are_told_apart_however_they_are_joined() -> None:
    assert KEY.derive("a", "b") != KEY.derive("ab")
    assert KEY.derive("a", "b") != KEY.derive('a", "b')
    assert KEY.derive(1) == KEY.derive("1")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_normal_numbers_follow_their_law(dtype: torch.dtype) -> None:
    drawn = KEY.draws().normals((200_001,), dtype)
    assert drawn.dtype is dtype
    assert stats.kstest(drawn.numpy(), "norm").pvalue > 0.01
    # Five standard errors of a correlation, of both halves and of their squares: a pair has its radius in common.
    halves = drawn[:200_000].view(2, -1)
    for both in (halves, halves.square()):
        assert abs(torch.corrcoef(both)[0, 1]) < 5 / len(halves[0]) ** 0.5


def test_noise_of_a_guarantee_is_a_sum_of_four_with_the_same_law() -> None:
    draws, twin = KEY.draws(), KEY.draws()
    drawn = draws.private_normals((50_000,))
    assert stats.kstest(drawn.numpy(), "norm").pvalue > 0.01
    assert torch.allclose(drawn, sum(twin.normals((50_000,)) for _ in range(4)) / 2, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_uniform_numbers_follow_their_law(dtype: torch.dtype) -> None:
    drawn = KEY.draws().uniforms((400, 500), dtype)
    assert drawn.shape == (400, 500)
    assert (drawn >= 0).all()
    assert (drawn < 1).all()
    assert stats.kstest(drawn.flatten().numpy(), "uniform").pvalue > 0.01


@pytest.mark.parametrize("high", [1, 2, 3, 7, 1000])
def test_whole_numbers_are_equally_likely(high: int) -> None:
    drawn = KEY.draws().integers(high, (20_000,))
    assert drawn.dtype is torch.int64
    assert high == 1 or stats.chisquare(torch.bincount(drawn, minlength=high).numpy()).pvalue > 0.01
    assert int(drawn.max()) < high


def test_large_whole_numbers_have_no_favourites() -> None:
    """Of three quarters of 2^63, a plain remainder would make the lower third twice as likely."""
    high = 3 * 2**61
    drawn = KEY.draws().integers(high, (3000,))
    assert abs((drawn < high // 3).double().mean() - 1 / 3) < 0.04


def test_orders_are_equally_likely() -> None:
    draws = KEY.draws()
    seen = [tuple(draws.permutation(3).tolist()) for _ in range(3000)]
    assert stats.chisquare([seen.count(order) for order in sorted(set(seen))]).pvalue > 0.01
    assert len(set(seen)) == 6
    assert draws.permutation(0).tolist() == []


def test_laplace_numbers_follow_their_law() -> None:
    drawn = KEY.draws().laplace_like(torch.zeros(100_000))
    assert stats.kstest(drawn.numpy(), "laplace").pvalue > 0.01


def make() -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 4, 5), nn.Flatten(), nn.Linear(100, 50), nn.Embedding(7, 5))


def test_initial_weights_keep_the_law_of_their_layers() -> None:
    before = torch.random.get_rng_state()
    with KEY.draws().initialise():
        one = make()
    with KEY.draws().initialise():
        again = make()
    with KEY.derive("other").draws().initialise():
        other = make()
    assert torch.equal(before, torch.random.get_rng_state())
    for (name, left), right, apart in zip(one.named_parameters(), again.parameters(), other.parameters(), strict=True):
        assert torch.equal(left, right), name
        assert not torch.isclose(left, apart).all(), name
    weight = one[2].weight.detach().flatten()
    assert stats.kstest(weight.numpy(), "uniform", args=(-0.1, 0.2)).pvalue > 0.01
    assert stats.kstest(one[3].weight.detach().flatten().numpy(), "norm").pvalue > 0.01


@pytest.mark.parametrize(
    "init", [nn.init.orthogonal_, nn.init.kaiming_normal_, nn.init.trunc_normal_, nn.init.xavier_uniform_]
)
def test_initialisers_of_torch_work(init: object) -> None:
    with KEY.draws().initialise():
        weight = init(torch.empty(20, 20))  # type: ignore[operator]
    assert torch.isfinite(weight).all()
    assert weight.std() > 0.01


def test_what_cannot_be_drawn_in_secret_raises() -> None:
    with (
        pytest.raises(LeaktightError, match=r"must be drawn by `uniform_` or `normal_`.*Got `bernoulli` instead"),
        KEY.draws().initialise(),
    ):
        torch.bernoulli(torch.ones(3))
    with pytest.raises(LeaktightError, match="Got `normal_` instead"), KEY.draws().initialise():
        torch.empty(3).normal_(generator=torch.Generator())


def test_a_key_shows_nothing_of_itself() -> None:
    key = SecretKey.new()
    local = Local("a", seed=0, key=key)
    for text in (repr(key), str(key), f"{key}", repr(local), repr(vars(local.now))):
        assert key.hex[:8] not in text


def test_keys_are_new_and_whole() -> None:
    assert len({SecretKey.new() for _ in range(100)}) == 100
    assert len(bytes.fromhex(SecretKey.new().hex)) == KEY_BYTES
    assert SecretKey.from_hex(KEY.hex) == KEY
    assert KEY != "key"
    with pytest.raises(InvalidValue, match=r"must have 32 bytes. Got 4 instead"):
        SecretKey(b"tiny")
    with pytest.raises(InvalidValue, match="must be written in hexadecimal digits"):
        SecretKey.from_hex("no")


def test_chains_and_their_links_have_keys_of_their_own() -> None:
    chain = Chain(links=(GaussianNoise(std=1.0), GaussianNoise(std=1.0)))
    message = Message(Kind.UPDATE, "a", "server", 0, {"weight": torch.zeros(1000)})
    noise = chain.on_message(message, Local("a", 0, key=KEY)).tensors["weight"]
    assert noise.std().item() == pytest.approx(2**0.5, rel=0.1)


def test_a_key_is_never_pickled() -> None:
    """What goes to other processes by pickle would be on their pipes; keys are made where they are used."""
    with pytest.raises(TypeError):
        pickle.dumps(KEY)
