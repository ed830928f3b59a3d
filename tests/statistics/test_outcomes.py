import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from leaktight.core.errors import InvalidValue
from leaktight.statistics import outcomes
from leaktight.statistics.outcomes import pack_hits, pack_ranks, pack_shares, unpack

shares = st.lists(st.floats(0, 1), min_size=1, max_size=30)


@given(st.lists(st.booleans(), max_size=40))
def test_hits_come_back_as_they_were(hits):
    found = unpack(pack_hits(torch.tensor(hits, dtype=torch.bool)))
    assert (found.kind, found.groups[0].tolist()) == ("hits", [float(hit) for hit in hits])


@given(shares)
def test_shares_come_back_within_half_a_step(values):
    found = unpack(pack_shares(torch.tensor(values)))
    assert found.kind == "shares"
    assert found.groups[0].tolist() == pytest.approx(values, abs=0.5 / 255 + 1e-6)


@given(shares, shares)
def test_ranks_come_back_within_half_a_step(positives, negatives):
    found = unpack(pack_ranks(torch.tensor(positives), torch.tensor(negatives)))
    assert [len(group) for group in found.groups] == [len(positives), len(negatives)]
    assert found.groups[0].tolist() == pytest.approx(positives, abs=0.5 / 255 + 1e-6)
    assert found.groups[1].tolist() == pytest.approx(negatives, abs=0.5 / 255 + 1e-6)


def test_they_are_small(monkeypatch):
    assert len(pack_hits(torch.ones(10_000))) < 1_700
    assert len(pack_ranks(torch.rand(5_000), torch.rand(5_000))) < 13_400
    monkeypatch.setattr(outcomes, "MOST_ROWS", 10)
    assert pack_hits(torch.ones(11)) == pack_ranks(torch.ones(6), torch.ones(5)) == pack_shares(torch.ones(11)) == ""
    assert pack_hits(torch.ones(10))
    assert pack_ranks(torch.ones(5), torch.ones(5))


def test_nothing_is_nothing_and_anything_else_is_refused():
    assert unpack("") is None
    for text in ("hits:3:", "hits:x:oA==", "ranks:3:oA==", "shares:3:oA==", "other:1:oA==", "hits:3:o A=="):
        with pytest.raises(InvalidValue, match="must be packed hits, shares or ranks"):
            unpack(text)


def test_only_the_same_rows_match():
    one, other, ranks = (
        unpack(text) for text in ("hits:3:oA==", "hits:4:oA==", pack_ranks(torch.ones(1), torch.ones(2)))
    )
    assert one.matches(one)
    assert not one.matches(other)
    assert not one.matches(ranks)
