"""Tensor files are checked before anything is allocated."""

import json

import pytest
import torch

from leaktight.captures.tensors import LARGEST_FILE, pack_tensors, read_tensors
from leaktight.core.errors import InvalidValue
from leaktight.core.tensor_file import LARGEST_HEADER

TENSORS = {
    "b.weight": torch.arange(6.0).view(2, 3),
    "a": torch.tensor(3),
    "half": torch.ones(2, dtype=torch.bfloat16),
    "none": torch.zeros(0, 4),
}


def file(tmp_path, content: bytes):
    path = tmp_path / "one.safetensors"
    path.write_bytes(content)
    return path


def write_file(tmp_path, header: object, data: bytes = b"", length: int | None = None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return file(tmp_path, (len(text) if length is None else length).to_bytes(8, "little") + text + data)


def entry(shape, begin, end, dtype="F32"):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def test_tensors_come_back_in_their_order(tmp_path):
    tensors = read_tensors(file(tmp_path, pack_tensors(TENSORS)))
    assert list(tensors) == list(TENSORS)
    assert all(torch.equal(tensors[name], tensor) for name, tensor in TENSORS.items())
    assert tensors["a"].shape == ()


def test_files_of_others_need_no_order(tmp_path):
    from safetensors.torch import save

    assert set(read_tensors(file(tmp_path, save({"x": torch.ones(2), "y": torch.ones(3)})))) == {"x", "y"}


def test_an_order_that_lies_is_ignored(tmp_path):
    header = {"__metadata__": {"order": '["x", "x"]'}, "x": entry([1], 0, 4)}
    assert list(read_tensors(write_file(tmp_path, header, bytes(4)))) == ["x"]


@pytest.mark.parametrize("kept", [0, 3, 8, 40, 200, -1])
def test_a_cut_file_is_one_sentence(tmp_path, kept):
    with pytest.raises(InvalidValue, match=r"`one.safetensors`") as caught:
        read_tensors(file(tmp_path, pack_tensors(TENSORS)[:kept]))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("length", [2**63, LARGEST_HEADER + 1, 10**6])
def test_a_header_longer_than_the_file_is_not_allocated(tmp_path, length):
    with pytest.raises(InvalidValue, match="is cut, or it is not safetensors"):
        read_tensors(write_file(tmp_path, b"{}", length=length))


@pytest.mark.parametrize(
    "header",
    [
        b"[" * 50_000,
        b"nonsense",
        [],
        {"x": 3},
        {"x": {}},
        {"x": entry([1], 0, 8)},
        {"x": entry([-1], 0, -4)},
        {"x": entry([True], 0, 4)},
        {"x": entry([1.0], 0, 4)},
        {"x": entry([1], 0, 4, "F8_E4M3")},
        {"x": entry([0, 10**18], 0, 0)},
        {"x": entry([1] * 20, 0, 4)},
        {"x": entry("11", 0, 4)},
        {"__metadata__": 3, "x": entry([1], 0, 4)},
        {"__metadata__": {"order": "["}, "x": entry([1], 0, 4)},
        {"x": entry([10**9, 10**9], 0, 4 * 10**18)},
    ],
)
def test_a_header_that_lies_is_one_sentence(tmp_path, header):
    with pytest.raises(InvalidValue, match=r"tensor file `one.safetensors`") as caught:
        read_tensors(write_file(tmp_path, header, bytes(4)))
    assert "\n" not in str(caught.value)


def test_tensors_that_share_their_place_are_refused(tmp_path):
    with pytest.raises(InvalidValue, match="overlap"):
        read_tensors(write_file(tmp_path, {"x": entry([1], 0, 4), "y": entry([1], 0, 4)}, bytes(4)))


def test_a_file_that_is_too_large_is_not_opened(tmp_path):
    path = tmp_path / "big.safetensors"
    with path.open("wb") as big:
        big.truncate(LARGEST_FILE + 1)
    with pytest.raises(InvalidValue, match=r"at most 4 GiB\. Got 4294967297 bytes instead"):
        read_tensors(path)


def test_a_missing_file_is_one_sentence(tmp_path):
    with pytest.raises(InvalidValue, match="cannot be read: no such file"):
        read_tensors(tmp_path / "none.safetensors")
