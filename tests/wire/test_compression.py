"""Compression: what comes back, how far it may be off, and what is refused."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from leaktight.core.errors import InvalidValue
from leaktight.core.random import stream
from leaktight.wire.compression import compress, decompress, size
from leaktight.wire.fault import PeerFault


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 6), st.integers(1, 5), st.floats(1e-30, 1e30), st.integers(0, 2**32))
def test_int8_is_off_by_half_a_level_of_its_row_at_most(rows, columns, unit, seed):
    exact = unit * torch.randn(rows, columns, 2, generator=stream(seed))
    back = decompress(compress(exact, "int8"), "int8", "peer")["activations"]
    level = exact.flatten(1).abs().amax(1) / 127
    assert ((back - exact).flatten(1).abs() <= 0.501 * level[:, None]).all()


def test_float16_rounds_and_says_when_it_cannot():
    exact = torch.randn(8, 4, generator=stream(0))
    back = decompress(compress(exact, "float16"), "float16", "peer")["activations"]
    assert torch.equal(back, exact.half().float())
    with pytest.raises(InvalidValue, match=r"below 65504 for `float16`. They are not; set `compression` to `int8`"):
        compress(torch.tensor([[1e5]]), "float16")


def test_off_is_the_identity_and_zeros_and_faults_stay_what_they_are():
    exact = torch.randn(8, 4, generator=stream(0))
    assert torch.equal(decompress(compress(exact, "none"), "none", "peer")["activations"], exact)
    assert torch.equal(
        decompress(compress(torch.zeros(3, 2), "int8"), "int8", "peer")["activations"], torch.zeros(3, 2)
    )
    for how in ("none", "float16", "int8"):
        spoilt = compress(torch.tensor([[1.0, torch.nan]]), how)
        assert not torch.isfinite(decompress(spoilt, how, "peer")["activations"]).all()


@pytest.mark.parametrize("how", ["none", "float16", "int8"])
def test_size_is_what_the_numbers_take(how):
    tensors = compress(torch.zeros(7, 3, 5), how)
    assert sum(tensor.numel() * tensor.element_size() for tensor in tensors.values()) == size(7, (3, 5), how)


@pytest.mark.parametrize(
    ("tensors", "how", "sentence"),
    [
        (
            {"activations": torch.ones(2).double()},
            "none",
            r"must come as torch.float32, as agreed by `compression`. Got torch.float64",
        ),
        ({"activations": torch.ones(2)}, "float16", r"must come as torch.float16"),
        ({"activations": torch.ones(2, 2).to(torch.int8)}, "int8", "one scale for each row"),
        ({"activations": torch.ones(2, 2).to(torch.int8), "scale": torch.ones(3)}, "int8", "one scale for each row"),
        (
            {"activations": torch.tensor(1, dtype=torch.int8), "scale": torch.tensor(1.0)},
            "int8",
            "one scale for each row",
        ),
    ],
)
def test_another_compression_than_agreed_is_refused(tensors, how, sentence):
    with pytest.raises(PeerFault, match=sentence):
        decompress(tensors, how, "peer")


@pytest.mark.parametrize("how", ["none", "float16", "int8"])
def test_names_are_left_to_the_party_that_accepts_the_activations(how):
    assert decompress({}, how, "peer") == {}
    more = decompress({**compress(torch.ones(2, 2), how), "more": torch.ones(1)}, how, "peer")
    assert more.keys() == {"activations", "more"}
