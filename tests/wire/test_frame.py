"""Frames: their header, their limits, and that no bytes whatever do harm."""

import json
import os
import tracemalloc

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from leaktight.core.errors import LeaktightError
from leaktight.wire.compression import expanded
from leaktight.wire.fault import PeerFault, shown
from leaktight.wire.frame import BULKY, CONTROL_LIMIT, EMPTY, HEADER, MAGIC, VERSION, Frame, Sort, read_frame
from leaktight.wire.hello import read_hello
from leaktight.wire.payload import pack_words, unpack_tensors, unpack_words

CASES = int(os.environ.get("LEAKTIGHT_FUZZ", "300"))
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


def sentence_of(action) -> str:
    """Return what our own error says, or nothing; any other error is the test's failure."""
    try:
        action()
    except LeaktightError as error:
        return str(error)
    return ""


def swallowed(content: bytes) -> None:
    """Do all that can be done with bytes from elsewhere; only our own errors may come of it, each of one short line."""
    said = [sentence_of(lambda: read_frame(content, "peer", LIMIT))]
    if not said[0]:
        frame = read_frame(content, "peer", LIMIT)
        readers = (
            lambda: expanded(unpack_tensors(frame.payload, "peer"), "none", "peer"),
            lambda: expanded(unpack_tensors(frame.payload, "peer"), "int8", "peer"),
            lambda: unpack_words(frame.payload, "peer"),
            lambda: read_hello(frame, "peer"),
        )
        said += map(sentence_of, readers)
    assert all(len(sentence) < 1000 and "\n" not in sentence for sentence in said)


def headed(payload: bytes, sort: int = Sort.HELLO, step: int = 0) -> bytes:
    return HEADER.pack(MAGIC, VERSION, sort, step, len(payload)) + payload


def archived(text: str, data: bytes = b"") -> bytes:
    """Return bytes in the form of a safetensors file with any header."""
    head = text.encode(errors="replace")
    return len(head).to_bytes(8, "little") + head + data


words = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)
fields = st.sampled_from(["role", "settings", "rows", "test_rows", "people", "training", "steps", "ids", "shape", "classes"])
tensor_header = st.fixed_dictionaries(
    {
        "dtype": st.sampled_from(["F32", "F16", "BF16", "F64", "I8", "I64", "BOOL", "F8_E5M2", "U64", "XX", ""]),
        "shape": st.lists(st.integers(-1, 2**63), max_size=4) | st.lists(st.integers(0, 4), max_size=3),
        "data_offsets": st.lists(st.integers(-1, 2**64), max_size=3) | st.tuples(st.just(0), st.integers(0, 64)).map(list),
    }
)


payloads = st.one_of(
    st.binary(max_size=200),
    st.text(max_size=200).map(archived),
    words.map(json.dumps).map(archived),
    st.builds(
        lambda tensors, data: archived(json.dumps(tensors), data),
        st.dictionaries(st.sampled_from(["activations", "scale", "gradient", "__metadata__"]), tensor_header, max_size=3),
        st.binary(max_size=64),
    ),
    st.dictionaries(st.text(max_size=8) | fields, words, max_size=10).map(pack_words),
    st.builds(lambda text: archived(json.dumps({"__metadata__": {"leaktight": text}})), st.text(max_size=60)),
)
contents = st.one_of(
    st.binary(max_size=100),
    st.builds(headed, payloads, st.integers(0, 12), st.integers(-(2**63), 2**63 - 1)),
    st.builds(
        lambda content, at, byte: content[:at] + bytes([byte]) + content[at + 1 :],
        payloads.map(headed),
        st.integers(0, 90),
        st.integers(0, 255),
    ),
    st.builds(lambda content, length: content[:length], payloads.map(headed), st.integers(0, 120)),
)


@settings(max_examples=CASES, deadline=2000)
@given(contents)
@example(headed(archived('{"__metadata__":{"leaktight":"' + "[" * 3000 + '"}}')))
@example(headed(archived('{"a":{"dtype":"F32","shape":[0,9223372036854775807],"data_offsets":[0,0]}}')))
@example(headed((2**63).to_bytes(8, "little") + b"{}"))
@example(headed(archived('{"__metadata__":{"leaktight":"{\\"about\\":{},\\"values\\":{\\"a\\":' + "9" * 3900 + '}}"}}')))
def test_no_bytes_whatever_crash_a_party(content):
    swallowed(content)


def test_a_payload_of_many_names_is_refused_before_it_is_read():
    entry = '"{}":{{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}'
    many = archived("{" + ",".join(entry.format(number) for number in range(100_000)) + "}")
    tracemalloc.start()
    with pytest.raises(PeerFault, match="must have a header of at most 4096 bytes"):
        unpack_tensors(many, "peer")
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 100_000
