"""Local: scopes with memory and streams of their own."""

import torch

from leaktight.core.local import Local
from leaktight.core.scenario import flatten, unflatten


def draw(local: Local) -> torch.Tensor:
    return local.draws.uniforms((3,))


def test_scopes_have_their_own_memory_and_stream():
    local = Local("client-0", seed=0)
    one, two = local.scope("one"), local.scope("two")
    one.memory["secret"] = 1
    assert two.memory == {}
    assert local.scope("one").memory == {"secret": 1}
    assert not torch.equal(draw(one), draw(two))


def test_a_draw_in_one_scope_changes_no_other():
    quiet, busy = Local("client-0", seed=0), Local("client-0", seed=0)
    draw(busy.scope("other"))
    assert torch.equal(draw(quiet.scope("mine")), draw(busy.scope("mine")))


def test_a_stream_goes_on_within_a_round_and_starts_anew_with_the_next():
    local = Local("client-0", seed=0)
    local.begin(0)
    first, second = draw(local.scope("a")), draw(local.scope("a"))
    local.begin(1)
    third = draw(local.scope("a"))
    local.begin(0)
    assert not torch.equal(first, second)
    assert not torch.equal(first, third)
    assert torch.equal(first, draw(local.scope("a")))


def test_parties_draw_differently():
    assert not torch.equal(draw(Local("client-0", seed=0)), draw(Local("client-1", seed=0)))


def test_memory_flattens_and_nests():
    memory = {
        "private": {"head.weight": torch.ones(2)},
        "defence": {"0-top_k": {"residual": {"a": torch.zeros(1)}}, "count": 3.0},
    }
    assert set(flatten(memory)) == {"private/head.weight", "defence/0-top_k/residual/a", "defence/count"}
    assert str(unflatten(flatten(memory))) == str(memory)


def test_a_scope_that_is_kept_moves_on_with_the_rounds():
    local = Local("client-0", seed=0)
    kept = local.scope("a")
    local.begin(0)
    first = draw(kept)
    local.begin(1)
    assert kept.round == 1
    assert not torch.equal(first, draw(kept))


def test_nothing_private_is_printed():
    local = Local("client-0", seed=0, memory={"key": 123456})
    assert "123456" not in repr(local)
