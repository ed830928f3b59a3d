"""Frames: their header, their limits and their payloads."""

import tracemalloc

import pytest
import safetensors.torch
import torch

from leaktight.core.random import stream
from leaktight.wire.fault import PeerFault, printable
from leaktight.wire.frame import (
    BULKY,
    CONTROL_LIMIT,
    HEADER,
    Frame,
    Sort,
    pack_tensors,
    pack_words,
    read_frame,
    unpack_tensors,
    unpack_words,
)

LIMIT = 4096


@pytest.mark.parametrize("sort", [sort for sort in Sort if sort is not Sort.DONE])
def test_a_frame_comes_back_as_it_was(sort):
    for frame in (Frame(sort, -1), Frame(sort, 2**62, b"payload")):
        assert read_frame(frame.to_bytes(), "peer", LIMIT) == frame


def test_the_header_is_of_fixed_length_and_the_rest_is_the_payload():
    content = Frame(Sort.GRADIENT, 3, b"ab").to_bytes()
    assert len(content) == HEADER.size + 2 == 11
    for length in range(HEADER.size):
        with pytest.raises(PeerFault, match=f"must have a header of 9 bytes. Got {length} instead"):
            read_frame(content[:length], "peer", LIMIT)


@pytest.mark.parametrize("sort", sorted(Sort))
def test_sizes_are_bounded_by_sort(sort):
    most = 0 if sort is Sort.DONE else 2 * CONTROL_LIMIT if sort in BULKY else CONTROL_LIMIT
    read_frame(Frame(sort, 0, bytes(most)).to_bytes(), "peer", 2 * CONTROL_LIMIT)
    with pytest.raises(PeerFault, match=f"must have at most {most} bytes. Got {most + 1} instead"):
        read_frame(Frame(sort, 0, bytes(most + 1)).to_bytes(), "peer", 2 * CONTROL_LIMIT)


def test_words_of_the_other_side_cannot_write_to_a_terminal():
    assert printable("a\x1b]0;title\x07b\r\nc\u202e" + "d" * 1000).startswith("a ]0;title b c d")
    assert len(printable("d" * 1000)) == 500


def test_tensors_travel_as_an_ordinary_safetensors_file():
    rows = torch.randn(4, 3, generator=stream(0))
    payload = pack_tensors({"gradient": rows.T})
    assert torch.equal(safetensors.torch.load(payload)["gradient"], rows.T)
    assert torch.equal(unpack_tensors(payload, "peer")["gradient"], rows.T)
    assert unpack_tensors(pack_tensors({}), "peer") == {}


def test_words_are_no_tensors_and_tensors_no_words():
    assert unpack_words(pack_words({"a": [1, "b"]}), "peer") == {"a": [1, "b"]}
    with pytest.raises(PeerFault, match="must be words as leaktight packs them"):
        unpack_words(pack_tensors({"a": torch.ones(1)}), "peer")
    with pytest.raises(PeerFault, match="must be a whole safetensors file"):
        unpack_tensors(b"\x02\0\0\0\0\0\0\0{}\x80\x04\x95pickle", "peer")


def test_a_payload_of_many_names_is_refused_before_it_is_read():
    entry = '"{}":{{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}'
    head = ("{" + ",".join(entry.format(number) for number in range(100_000)) + "}").encode()
    many = len(head).to_bytes(8, "little") + head
    tracemalloc.start()
    with pytest.raises(PeerFault, match="must have a header of at most 4096 bytes"):
        unpack_tensors(many, "peer")
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 100_000
