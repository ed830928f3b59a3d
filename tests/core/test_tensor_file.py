"""Tensor files: what safetensors writes comes back, and what lies is refused before it costs anything."""

from __future__ import annotations

import io
import json

import pytest
import safetensors.torch
import torch

from leaktight.core.tensor_file import MOST_TENSORS, DamagedTensors, load_tensors

KINDS = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16]
KINDS += [torch.float32, torch.float64, torch.uint16, torch.uint32, torch.uint64]


def load(content: bytes):
    return load_tensors(io.BytesIO(content), len(content))


def make_file(header: dict[str, object], content: bytes = b"") -> bytes:
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + content


def entry(shape: list[int], begin: int, end: int, kind: str = "F32") -> dict[str, object]:
    return {"dtype": kind, "shape": shape, "data_offsets": [begin, end]}


def test_every_type_comes_back_as_the_library_reads_it() -> None:
    tensors = {str(kind): (torch.arange(6) % 2).reshape(2, 3).to(kind) for kind in KINDS}
    tensors |= {"scalar": torch.tensor(2.5), "empty": torch.zeros(0, 4)}
    content = safetensors.torch.save(tensors, metadata={"a": "b"})
    found, words = load(content)
    assert words == {"a": "b"}
    assert found.keys() == tensors.keys()
    for name, tensor in safetensors.torch.load(content).items():
        assert found[name].dtype == tensor.dtype
        assert found[name].shape == tensor.shape
        assert torch.equal(found[name], tensor)


def test_each_tensor_has_memory_of_its_own_and_can_be_changed() -> None:
    found, _ = load(safetensors.torch.save({"a": torch.ones(2), "b": torch.ones(2)}))
    found["a"] += 1
    assert found["b"].tolist() == [1, 1]


def test_truth_values_are_true_or_false() -> None:
    found, _ = load(make_file({"a": entry([3], 0, 3, "BOOL")}, b"\x00\x01\xff"))
    assert found["a"].tolist() == [False, True, True]
    assert int(found["a"].sum()) == 2


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is cut"),
        ((1 << 60).to_bytes(8, "little"), "is cut"),
        (make_file({"a": entry([1], 0, 4), "b": entry([1], 0, 4)}, bytes(4)), "overlap or leave a gap"),
        (make_file({"a": entry([1], 4, 8)}, bytes(8)), "overlap or leave a gap"),
        (make_file({"a": entry([1], 0, 4)}, bytes(8)), "as many bytes as its header says, 4, and has 8"),
        (make_file({"a": entry([2**40], 0, 2**42)}, bytes(8)), "as many bytes as its header says"),
        (make_file({"a": entry([2**62, 4], 0, 0)}), "shape does not fit"),
        (make_file({"a": entry([1], 0, 4, "F4")}, bytes(4)), "cannot be read"),
        (make_file({"__metadata__": {"a": 3}}), "cannot be read"),
        (make_file({str(n): entry([0], 0, 0) for n in range(MOST_TENSORS + 1)}), f"more than {MOST_TENSORS} tensors"),
    ],
)
def test_what_does_not_fit_is_said_in_a_few_words(content: bytes, says: str) -> None:
    with pytest.raises(DamagedTensors, match=says):
        load(content)


def test_as_many_tensors_as_a_file_may_have() -> None:
    found, _ = load(make_file({str(n): entry([0], 0, 0) for n in range(MOST_TENSORS)}))
    assert len(found) == MOST_TENSORS
