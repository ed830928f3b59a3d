"""Whatever is in a capture, a manifest or a truth file: it is read, or refused in one sentence; nothing crashes, hangs or grows.

`LEAKTIGHT_FUZZ=10000 pytest tests/captures/test_fuzz.py` tries as many cases of each; by default it is a few hundred.
"""

import json
import os
import tempfile
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from leaktight.captures import read_captures, read_truth
from leaktight.captures.capture import pack_tensors, read_tensors
from leaktight.captures.manifest import LARGEST_GUESS, Manifest, parse_manifest
from leaktight.core.errors import InvalidValue

CASES = int(os.environ.get("LEAKTIGHT_FUZZ", "200"))
# A hang is ended by pytest's own timeout, and a slow machine is no fault.
fuzz = settings(max_examples=CASES, deadline=None, suppress_health_check=list(HealthCheck), derandomize=CASES <= 200)
pytestmark = pytest.mark.timeout(60 + CASES // 5)

GOOD = {
    "kind": "update",
    "sender": "node-1",
    "round": 2,
    "tensors": "a.safetensors",
    "parameters": "b.safetensors",
    "examples": 4,
    "shape": [1, 8, 8],
    "learning_rate": 0.1,
    "local_steps": 2,
}
FILE = pack_tensors({"weight": torch.arange(6.0).view(2, 3), "bias": torch.tensor(1.5), "steps": torch.tensor([1, 2])})
TRUTH = pack_tensors({"a/0/inputs": torch.rand(2, 1, 3, 3), "a/0/labels": torch.tensor([0, 1])})

numbers = st.one_of(st.integers(), st.floats(), st.just(10**400), st.sampled_from([0, -1, 2**31, 2**63, 1e308]))
words = st.text(max_size=20)
scalars = st.one_of(st.none(), st.booleans(), numbers, words)
anything = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=2), max_leaves=5
)
fields = st.sampled_from([*Manifest.model_fields, "unknown", ""])


@st.composite
def damaged(draw, content: bytes):
    """Return bytes with some cut, changed, doubled or put in."""
    spoilt = bytearray(content)
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, len(spoilt)))
        match draw(st.sampled_from(["cut", "change", "insert", "drop", "double"])):
            case "cut":
                del spoilt[at:]
            case "change":
                spoilt[at : at + 1] = draw(st.binary(min_size=1, max_size=8))
            case "insert":
                spoilt[at:at] = draw(st.binary(max_size=16))
            case "drop":
                del spoilt[at : at + draw(st.integers(1, 32))]
            case "double":
                spoilt += spoilt[at:]
    return bytes(spoilt)


@st.composite
def headers(draw):
    """Return a tensor file whose header may say anything of its content."""
    entry = st.fixed_dictionaries(
        {
            "dtype": st.sampled_from(["F32", "F64", "I64", "BOOL", "F8_E5M2", "", "f32"]) | anything,
            "shape": st.lists(numbers, max_size=20) | anything,
            "data_offsets": st.lists(numbers, min_size=2, max_size=2) | anything,
        }
    )
    header = draw(
        st.dictionaries(st.text(max_size=20) | st.just("__metadata__"), entry | anything, max_size=5) | anything
    )
    text = json.dumps(header, default=str).encode("utf-8", "surrogatepass")
    length = draw(st.sampled_from([len(text), 0, 2**64 - 1, 2**40, len(text) + 1, max(0, len(text) - 1)]))
    return length.to_bytes(8, "little") + text + draw(st.binary(max_size=64))


def tried(read):
    """Return what was read, or None if it was refused in one sentence."""
    try:
        return read()
    except InvalidValue as error:
        said = str(error)
    assert said
    assert "\n" not in said
    assert len(said) < 1000
    return None


def check_file(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "one.safetensors"
        path.write_bytes(content)
        tensors = tried(lambda: read_tensors(path))
    if tensors is not None:
        assert sum(tensor.numel() * tensor.element_size() for tensor in tensors.values()) <= len(content)


@fuzz
@given(st.dictionaries(fields, anything, max_size=3))
def test_manifests_with_any_value(changes):
    manifest = tried(lambda: parse_manifest(json.dumps({**GOOD, **changes}).encode("utf-8", "surrogatepass"), "one"))
    if manifest is not None:
        numbers_in_all = (manifest.examples or 1) * torch.Size(manifest.shape or ()).numel()
        assert 0 < numbers_in_all <= LARGEST_GUESS
        assert manifest.facts()["examples"] >= 1
        assert "/" not in manifest.tensors + manifest.parameters


@fuzz
@given(st.binary() | damaged(json.dumps(GOOD).encode()))
def test_manifests_of_any_bytes(content):
    tried(lambda: parse_manifest(content, "one"))


@fuzz
@given(damaged(FILE))
def test_damaged_tensor_files(content):
    check_file(content)


@fuzz
@given(st.binary() | headers())
def test_tensor_files_with_any_header(content):
    check_file(content)


@fuzz
@given(damaged(TRUTH))
def test_damaged_truth(content):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "truth.safetensors"
        path.write_bytes(content)
        batches = tried(lambda: read_truth(path, ["a/0"]))
    assert batches is None or all(len(batch.inputs) == len(batch.labels) > 0 for batch in batches.values())


@fuzz
@given(
    damaged(json.dumps(GOOD).encode()),
    damaged(FILE),
    st.sampled_from(["a.safetensors", "b.safetensors", "c.safetensors"]),
)
def test_whole_folders(manifest, tensors, name):
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        (folder / "one.capture.json").write_bytes(manifest)
        (folder / name).write_bytes(tensors)
        captures = tried(lambda: read_captures(folder))
        for capture in captures or []:
            tried(capture.tensors)
            tried(capture.parameters)
