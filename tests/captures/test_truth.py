"""The truth is the owner's: batches by message, refused in one sentence where they do not fit."""

import pytest
import torch

from leaktight.captures import read_truth, write_truth
from leaktight.captures.capture import pack_tensors
from leaktight.core.errors import InvalidValue
from leaktight.core.task import Batch

BATCH = Batch(torch.rand(2, 1, 4, 4, generator=torch.Generator().manual_seed(0)), torch.tensor([1, 0]))


def written(tmp_path, **tensors):
    path = tmp_path / "truth.safetensors"
    path.write_bytes(pack_tensors(tensors))
    return path


def test_batches_come_back_by_message(tmp_path):
    path = tmp_path / "truth.safetensors"
    write_truth(path, {"a/0": BATCH, "b/1": BATCH})
    batches = read_truth(path, ["a/0", "c/0"])
    assert list(batches) == ["a/0"]
    assert torch.equal(batches["a/0"].inputs, BATCH.inputs)
    assert oct(path.stat().st_mode & 0o777) == "0o600"


def test_owners_may_put_a_file_each_into_one_folder(tmp_path):
    write_truth(tmp_path / "a.safetensors", {"a/0": BATCH})
    write_truth(tmp_path / "b.safetensors", {"b/0": BATCH})
    assert list(read_truth(tmp_path, ["a/0", "b/0", "c/0"])) == ["a/0", "b/0"]
    (tmp_path / "none").mkdir()
    with pytest.raises(InvalidValue, match="holds no private batches"):
        read_truth(tmp_path / "none", ["a/0"])


def test_a_single_batch_needs_no_name(tmp_path):
    path = written(tmp_path, inputs=BATCH.inputs, labels=BATCH.labels)
    assert list(read_truth(path, ["a/0"])) == ["a/0"]
    with pytest.raises(InvalidValue, match="must hold `SENDER/ROUND/inputs`"):
        read_truth(path, ["a/0", "b/0"])


def test_bytes_become_pixels(tmp_path):
    path = written(tmp_path, inputs=torch.full((1, 1, 2, 2), 255, dtype=torch.uint8), labels=torch.tensor([1]))
    assert read_truth(path, ["a/0"])["a/0"].inputs.max() == 1


@pytest.mark.parametrize(
    ("tensors", "why"),
    [
        ({"inputs": BATCH.inputs}, "must hold `SENDER/ROUND/inputs`"),
        ({"a/0/inputs": BATCH.inputs, "a/0/classes": BATCH.labels}, "Got `a/0/classes`"),
        ({"b/0/inputs": BATCH.inputs, "b/0/labels": BATCH.labels}, "the first message here is `a/0`"),
        ({"inputs": BATCH.inputs, "labels": BATCH.labels[:1]}, "as many inputs as integer labels"),
        ({"inputs": BATCH.inputs, "labels": BATCH.labels.float()}, "as many inputs as integer labels"),
        ({"inputs": BATCH.inputs[:0], "labels": BATCH.labels[:0]}, "at least one"),
        ({"inputs": torch.full((2, 3), torch.nan), "labels": BATCH.labels}, "must be finite"),
    ],
)
def test_what_does_not_fit_is_one_sentence(tmp_path, tensors, why):
    path = written(tmp_path, **tensors)
    with pytest.raises(InvalidValue, match="truth `") as caught:
        read_truth(path, ["a/0"])
    assert why in str(caught.value)
    assert "\n" not in str(caught.value)
