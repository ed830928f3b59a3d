"""Frames: their header and their limits."""

import tracemalloc

import pytest

from leaktight.wire.fault import PeerFault, shown
from leaktight.wire.frame import BULKY, CONTROL_LIMIT, EMPTY, HEADER, MAGIC, VERSION, Frame, Sort, read_frame
from leaktight.wire.payload import unpack_tensors

LIMIT = 4096


@pytest.mark.parametrize("sort", [sort for sort in Sort if sort not in EMPTY])
def test_a_frame_comes_back_as_it_was(sort):
    for frame in (Frame(sort, -1), Frame(sort, 2**62, b"payload")):
        assert read_frame(frame.to_bytes(), "peer", LIMIT) == frame


def test_the_header_is_of_fixed_length_and_names_magic_and_version_first():
    content = Frame(Sort.GRADIENT, 3, b"ab").to_bytes()
    assert len(content) == HEADER.size + 2 == 26
    assert content[:6] == MAGIC + VERSION.to_bytes(2, "big")


@pytest.mark.parametrize("sort", sorted(Sort))
def test_sizes_are_bounded_by_sort(sort):
    most = 0 if sort in EMPTY else 2 * CONTROL_LIMIT if sort in BULKY else CONTROL_LIMIT
    with pytest.raises(PeerFault, match=f"must have at most {most} bytes. Got {most + 1} instead"):
        read_frame(HEADER.pack(MAGIC, VERSION, sort, 0, most + 1), "peer", 2 * CONTROL_LIMIT)


def test_words_of_the_other_side_cannot_write_to_a_terminal():
    assert shown("a\x1b]0;title\x07b\r\nc\u202e" + "d" * 1000).startswith("a ]0;title b c d")
    assert len(shown("d" * 1000)) == 500


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
