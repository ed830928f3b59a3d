"""Captures are written whole, for their owner alone; their tensors are checked before anything is allocated."""

import json

import pytest
import torch

from leaktight.captures import read_captures, write_capture
from leaktight.captures.capture import LARGEST_FILE, difference, make_capture_folder, pack_tensors, read_tensors
from leaktight.core.errors import InvalidValue
from leaktight.core.tensor_file import LARGEST_HEADER

ONE = {"weight": torch.arange(4.0)}
TENSORS = {
    "b.weight": torch.arange(6.0).view(2, 3),
    "a": torch.tensor(3),
    "half": torch.ones(2, dtype=torch.bfloat16),
    "none": torch.zeros(0, 4),
}


def write(folder, sender="client-0", round=0, sent=ONE, parameters=ONE, **known):
    return write_capture(folder, parameters, sent, kind="gradient", sender=sender, round=round, **known)


def test_captures_come_back_in_the_order_of_rounds(tmp_path):
    for sender, number in (("b", 10), ("a", 10), ("a", 9)):
        write(tmp_path, sender, number)
    assert [(one.manifest.sender, one.manifest.round) for one in read_captures(tmp_path)] == [
        ("a", 9),
        ("a", 10),
        ("b", 10),
    ]


def test_parameters_that_several_answer_are_kept_once(tmp_path):
    for number in range(3):
        write(tmp_path, f"client-{number}")
    write(tmp_path, round=1, parameters={"weight": torch.zeros(4)})
    assert len(list(tmp_path.glob("parameters-*"))) == 2
    assert all(torch.equal(one.parameters()["weight"], ONE["weight"]) for one in read_captures(tmp_path)[:3])


def test_files_are_for_their_owner_alone(tmp_path):
    folder = tmp_path / "new"
    write(folder)
    assert oct(folder.stat().st_mode & 0o777) == "0o700"
    assert {oct(path.stat().st_mode & 0o777) for path in folder.iterdir()} == {"0o600"}


def test_senders_with_odd_names_do_not_share_a_file(tmp_path):
    for sender in ("a.b", "a:b", "a b", "a-b", "é"):
        write(tmp_path, sender)
    assert len(read_captures(tmp_path)) == 5


def test_the_same_message_written_again_replaces_the_first(tmp_path):
    write(tmp_path)
    write(tmp_path, sent={"weight": torch.ones(4)})
    [capture] = read_captures(tmp_path)
    assert capture.tensors()["weight"].tolist() == [1, 1, 1, 1]


def test_two_manifests_of_one_message_are_an_error(tmp_path):
    manifest = write(tmp_path)
    (tmp_path / "copy.capture.json").write_text(json.dumps(manifest.to_dict()))
    with pytest.raises(InvalidValue, match="two captures of what client-0 sent in round 0"):
        read_captures(tmp_path)


def test_a_folder_without_captures_is_one_sentence(tmp_path):
    with pytest.raises(InvalidValue, match="holds no captures"):
        read_captures(tmp_path)
    with pytest.raises(InvalidValue, match="There is no folder"):
        read_captures(tmp_path / "none")


def test_a_folder_with_captures_takes_no_second_run(tmp_path):
    assert make_capture_folder(tmp_path / "new").is_dir()
    write(tmp_path)
    with pytest.raises(InvalidValue, match="holds captures already"):
        make_capture_folder(tmp_path)


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_numbers_that_are_not_finite_are_one_sentence(tmp_path, number):
    write(tmp_path, sent={"weight": torch.tensor([1.0, number])})
    with pytest.raises(
        InvalidValue, match=r"`weight` in `message-client-0-0.safetensors` holds numbers that are not finite"
    ):
        read_captures(tmp_path)[0].tensors()


def test_a_manifest_whose_tensors_are_gone_is_one_sentence(tmp_path):
    manifest = write(tmp_path)
    (tmp_path / manifest.tensors).unlink()
    with pytest.raises(InvalidValue, match="cannot be read"):
        read_captures(tmp_path)[0].tensors()


def test_a_difference_is_by_name_and_in_single_precision():
    before = {"a": torch.ones(2, dtype=torch.float16), "b": torch.zeros(1), "n": torch.tensor(3)}
    moved = difference(before, {"n": torch.tensor(5), "a": torch.zeros(2, dtype=torch.float16)})
    assert list(moved) == ["a"]
    assert moved["a"].dtype is torch.float32
    with pytest.raises(InvalidValue, match="must keep its shape"):
        difference({"a": torch.ones(2)}, {"a": torch.ones(3)})


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
