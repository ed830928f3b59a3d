"""No bytes whatever crash a party, make it hang or fill its memory. `LEAKTIGHT_FUZZ=10000` tries more of them."""

import json
import os
import threading
import tracemalloc

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from leaktight.core.errors import LeaktightError
from leaktight.core.random import stream
from leaktight.wire.compression import decompress
from leaktight.wire.connection import Connection
from leaktight.wire.fault import Lost, PeerFault, Rejected
from leaktight.wire.frame import HEADER, Frame, Sort, pack_tensors, pack_words, read_frame, unpack_tensors, unpack_words
from leaktight.wire.handshake import read_hello

CASES = int(os.environ.get("LEAKTIGHT_FUZZ", "240"))
LIMIT = 4096


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
            lambda: decompress(unpack_tensors(frame.payload, "peer"), "none", "peer"),
            lambda: decompress(unpack_tensors(frame.payload, "peer"), "int8", "peer"),
            lambda: unpack_words(frame.payload, "peer"),
            lambda: read_hello(frame, "peer"),
        )
        said += map(sentence_of, readers)
    assert all(len(sentence) < 1000 and "\n" not in sentence for sentence in said)


def headed(payload: bytes, sort: int = Sort.HELLO, step: int = 0) -> bytes:
    return HEADER.pack(sort, step) + payload


def archived(text: str, data: bytes = b"") -> bytes:
    """Return bytes in the form of a safetensors file with any header."""
    head = text.encode(errors="replace")
    return len(head).to_bytes(8, "little") + head + data


words = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)
fields = st.sampled_from(
    ["role", "settings", "rows", "test_rows", "people", "training", "steps", "ids", "shape", "classes"]
)
tensor_header = st.fixed_dictionaries(
    {
        "dtype": st.sampled_from(["F32", "F16", "BF16", "F64", "I8", "I64", "BOOL", "F8_E5M2", "U64", "XX", ""]),
        "shape": st.lists(st.integers(-1, 2**63), max_size=4) | st.lists(st.integers(0, 4), max_size=3),
        "data_offsets": st.lists(st.integers(-1, 2**64), max_size=3)
        | st.tuples(st.just(0), st.integers(0, 64)).map(list),
    }
)


payloads = st.one_of(
    st.binary(max_size=200),
    st.text(max_size=200).map(archived),
    words.map(json.dumps).map(archived),
    st.builds(
        lambda tensors, data: archived(json.dumps(tensors), data),
        st.dictionaries(
            st.sampled_from(["activations", "scale", "gradient", "__metadata__"]), tensor_header, max_size=3
        ),
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
@example(
    headed(archived('{"__metadata__":{"leaktight":"{\\"about\\":{},\\"values\\":{\\"a\\":' + "9" * 3900 + '}}"}}'))
)
def test_no_bytes_whatever_crash_a_party(content):
    swallowed(content)


rows = st.builds(
    lambda count, width, dtype, unit, seed: (unit * torch.randn(count, width, generator=stream(seed))).to(dtype),
    st.sampled_from([16, 16, 16, 0, 1, 17, 40]),
    st.sampled_from([6, 6, 6, 0, 5, 64]),
    st.sampled_from([torch.float32, torch.float32, torch.float64, torch.float16, torch.int8]),
    st.sampled_from([1.0, 1e30, float("nan"), float("inf")]),
    st.integers(0, 3),
)
activations = st.builds(
    lambda tensor, name, sort, step: (sort, step, pack_tensors({name: tensor})),
    rows,
    st.sampled_from(["activations", "activations", "gradient", ""]),
    st.sampled_from([Sort.ACTIVATIONS, Sort.ACTIVATIONS, Sort.TEST, Sort.GRADIENT, Sort.DONE]),
    st.sampled_from([0, 0, 0, 1, -1, 100]),
)


def conversed(side, frames):
    """Have a side listen to frames until it has had enough, and return how much memory it took at most."""
    connection = Connection(side.peer, patience=5.0)
    targets = (lambda: connection.feed(frames), lambda: list(connection.drain()))
    threads = [threading.Thread(target=target) for target in targets]
    for thread in threads:
        thread.start()
    tracemalloc.start()
    with pytest.raises((Lost, PeerFault, Rejected)):
        side.converse(connection)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    connection.close()
    for thread in threads:
        thread.join(5)
        assert not thread.is_alive()
    return most


@pytest.fixture(scope="module")
def warm(sides):
    """Both sides, after a first step, at which torch imports much."""
    with torch.random.fork_rng():
        torch.optim.Adam([torch.zeros(1, requires_grad=True)]).step()
    return sides


@settings(max_examples=CASES // 3, deadline=None)
@given(st.booleans(), st.lists(activations | contents, max_size=4))
def test_no_conversation_whatever_crashes_the_label_party(warm, greets, parts):
    """Steps of frames count from where the label party is, so that some of them are taken."""
    label, feature = warm
    now = label.steps[-1]
    frames = [part if isinstance(part, bytes) else Frame(part[0], now + part[1], part[2]).to_bytes() for part in parts]
    if greets:
        them = feature.hello(ids=list(feature.data.columns.ids)).model_copy(update={"steps": label.steps})
        frames.insert(0, them.to_frame().to_bytes())
    assert conversed(label, frames) < 5_000_000
    assert now <= label.steps[-1] <= now + len(parts)
    if label.party is not None:
        assert all(torch.isfinite(parameter).all() for parameter in label.party.top.parameters())
