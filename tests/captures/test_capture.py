"""Captures are written whole, for their owner alone, and read back by round and sender."""

import json

import pytest
import torch

from leaktight.captures import read_captures, write_capture
from leaktight.captures.capture import difference, make_capture_folder
from leaktight.core.errors import InvalidValue

ONE = {"weight": torch.arange(4.0)}


def write(folder, sender="client-0", round=0, sent=ONE, parameters=ONE, **known):
    return write_capture(folder, parameters, sent, kind="gradient", sender=sender, round=round, **known)


def test_captures_come_back_in_the_order_of_rounds(tmp_path):
    for sender, number in (("b", 10), ("a", 10), ("a", 9)):
        write(tmp_path, sender, number)
    assert [(one.manifest.sender, one.manifest.round) for one in read_captures(tmp_path)] == [("a", 9), ("a", 10), ("b", 10)]


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
    with pytest.raises(InvalidValue, match=r"`weight` in `message-client-0-0.safetensors` holds numbers that are not finite"):
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
