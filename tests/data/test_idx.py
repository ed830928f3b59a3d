from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest
import torch

from leaktight.data import Idx
from leaktight.data.idx import read_idx

IMAGES, LABELS = "images-idx3-ubyte", "labels-idx1-ubyte"


def idx_bytes(array: np.ndarray, code: int = 0x08) -> bytes:
    return struct.pack(f">HBB{array.ndim}I", 0, code, array.ndim, *array.shape) + array.tobytes()


def write_set(folder: Path, gz: bool = False, labels=(3, 5, 3, 5, 3, 5)) -> tuple[np.ndarray, np.ndarray]:
    folder.mkdir(exist_ok=True)
    images = np.random.default_rng(0).integers(0, 256, (6, 7, 7), dtype=np.uint8)
    ids = np.array(labels, np.uint8)
    for prefix, part in (("train", slice(0, 4)), ("t10k", slice(4, 6))):
        for name, array in ((IMAGES, images[part]), (LABELS, ids[part])):
            packed = gzip.compress(idx_bytes(array)) if gz else idx_bytes(array)
            (folder / f"{prefix}-{name}{'.gz' if gz else ''}").write_bytes(packed)
    return images, ids


@pytest.mark.parametrize("gz", [False, True])
def test_what_was_written_is_read(tmp_path, gz):
    images, ids = write_set(tmp_path / "set", gz)
    data = Idx(path=tmp_path / "set").load()
    assert data.shape == (1, 7, 7)
    assert data.names == ("3", "5")
    np.testing.assert_allclose(data.train.inputs[:, 0].numpy(), images[:4] / 255, atol=1e-7)
    np.testing.assert_allclose(data.test.inputs[:, 0].numpy(), images[4:] / 255, atol=1e-7)
    assert [int(data.names[label]) for label in data.train.labels] == ids[:4].tolist()
    assert [int(data.names[label]) for label in data.test.labels] == ids[4:].tolist()


def test_a_plain_file_beside_its_archive_is_preferred(tmp_path):
    write_set(tmp_path)
    (tmp_path / f"train-{IMAGES}.gz").write_bytes(b"not gzip")
    assert len(Idx(path=tmp_path).load().train) == 4


@pytest.mark.parametrize("pattern", ["emnist-letters-{}-{}", "{}.{}", "{}-{}"])
def test_names_of_relatives_are_known(tmp_path, pattern):
    write_set(tmp_path)
    for prefix in ("train", "t10k"):
        for name in (IMAGES, LABELS):
            file = tmp_path / f"{prefix}-{name}"
            other = f"{prefix}-{name.replace('-idx', '.idx')}" if "." in pattern else pattern.format(prefix, name)
            file.rename(tmp_path / other)
    assert Idx.fits(tmp_path)
    assert len(Idx(path=tmp_path).load().test) == 2


def test_files_can_be_named_one_by_one(tmp_path, says):
    write_set(tmp_path)
    for prefix in ("train", "t10k"):
        (tmp_path / f"{prefix}-{IMAGES}").rename(tmp_path / f"{prefix}.pixels")
    with says("`train-images-idx3-ubyte`", "Got none", "name it by `train_images`"):
        Idx(path=tmp_path).load()
    data = Idx(path=tmp_path, train_images="train.pixels", test_images="t10k.pixels").load()
    assert len(data.train) == 4


def test_several_candidates_are_not_guessed_between(tmp_path, says):
    write_set(tmp_path)
    (tmp_path / f"other-train-{IMAGES}").write_bytes(b"")
    with says("Got several: other-train-images-idx3-ubyte, train-images-idx3-ubyte"):
        Idx(path=tmp_path).load()


@pytest.mark.parametrize(
    ("code", "dtype"), [(0x08, ">u1"), (0x09, ">i1"), (0x0B, ">i2"), (0x0C, ">i4"), (0x0D, ">f4"), (0x0E, ">f8")]
)
def test_every_number_type_of_the_format(tmp_path, code, dtype):
    array = np.arange(-6 if dtype != ">u1" else 0, 18 if dtype == ">u1" else 12).reshape(3, 3, 2).astype(dtype)
    (tmp_path / "x").write_bytes(idx_bytes(array, code))
    found = read_idx(tmp_path / "x", 3)
    assert found.dtype.isnative
    np.testing.assert_array_equal(found, array)


def damage(name: str, change):
    def apply(folder: Path) -> None:
        file = folder / name
        file.write_bytes(change(file.read_bytes()))

    return apply


@pytest.mark.parametrize(
    ("gz", "apply", "words"),
    [
        (False, damage(f"train-{IMAGES}", lambda b: b[:-10]), ("truncated", "promises 212 bytes", "Got 202")),
        (False, damage(f"train-{IMAGES}", lambda b: b + b"x"), ("too long", "Got 213")),
        (False, damage(f"train-{IMAGES}", lambda b: b[:9]), ("truncated",)),
        (
            False,
            damage(f"train-{IMAGES}", lambda b: b"\x89PNG" + b[4:]),
            ("magic number of an IDX file", "89 50 4e 47"),
        ),
        (False, damage(f"train-{IMAGES}", lambda b: b""), ("magic number",)),
        (False, damage(f"t10k-{LABELS}", lambda b: b[:3] + b"\x03" + b[4:]), ("must have 1 dimensions", "Got 3")),
        (
            False,
            damage(f"t10k-{LABELS}", lambda b: idx_bytes(np.array([3], np.uint8))),
            ("a label for each image", "2 images and 1"),
        ),
        (
            False,
            damage(f"t10k-{LABELS}", lambda b: idx_bytes(np.array([3, 9], np.uint8))),
            ("occur in training", "`9`"),
        ),
        (True, damage(f"train-{IMAGES}.gz", lambda b: b[:-30]), ("whole gzip file", "fetch it again")),
        (True, damage(f"train-{IMAGES}.gz", lambda b: b"plain"), ("whole gzip file",)),
        (True, damage(f"train-{IMAGES}.gz", lambda b: b[:20] + b"\xff" * 20 + b[40:]), ("whole gzip file",)),
    ],
)
def test_damaged_files_are_named_with_the_fault(tmp_path, gz, apply, words, says):
    write_set(tmp_path, gz)
    apply(tmp_path)
    with says(str(tmp_path), *words):
        Idx(path=tmp_path).load()


def test_a_huge_promise_does_not_ask_for_memory(tmp_path, says):
    (tmp_path / "x").write_bytes(struct.pack(">HBB3I", 0, 8, 3, 2**32 - 1, 2**32 - 1, 2**32 - 1))
    with says("truncated", str(16 + (2**32 - 1) ** 3)):
        read_idx(tmp_path / "x", 3)


def test_missing_folder_and_file(tmp_path, says):
    with says("There is no file or folder", "nowhere"):
        Idx(path=tmp_path / "nowhere").load()
    write_set(tmp_path)
    with says("There is no file or folder", "absent"):
        Idx(path=tmp_path, train_labels="absent").load()
    with says("cannot be read"):
        Idx(path=tmp_path / f"train-{IMAGES}").load()
    with says("`path` of idx"):
        Idx(path="")


def test_limits_and_size(tmp_path):
    write_set(tmp_path)
    data = Idx(path=tmp_path, train_limit=2, test_limit=1, size=32).load()
    assert data.train.inputs.shape == (2, 1, 32, 32)
    assert sorted(data.train.labels.tolist()) == [0, 1]
    assert len(data.test) == 1
    assert data.classes == 2


def test_a_changed_file_is_read_again(tmp_path):
    write_set(tmp_path)
    first = Idx(path=tmp_path).load()
    assert Idx(path=tmp_path).load() is first
    (tmp_path / f"t10k-{LABELS}").write_bytes(idx_bytes(np.array([5, 3], np.uint8)))
    (tmp_path / f"t10k-{IMAGES}").write_bytes(idx_bytes(np.zeros((2, 7, 7), np.uint8)))
    assert Idx(path=tmp_path).load().test.inputs.max() == 0


def test_fashion_mnist(real):
    data = Idx(path=real("fashion-mnist"), train_limit=2000, test_limit=1000).load()
    assert data.shape == (1, 28, 28)
    assert torch.bincount(data.train.labels).tolist() == [200] * 10
    assert torch.bincount(data.test.labels).tolist() == [100] * 10


def test_mnist_labels_and_pixels(real):
    folder = real("mnist")
    data = Idx(path=folder, train_limit=1, test_limit=None).load()
    with gzip.open(folder / f"t10k-{IMAGES}.gz") as packed:
        pixels = np.frombuffer(packed.read(), np.uint8, offset=16).reshape(-1, 28, 28)
    np.testing.assert_array_equal((data.test.inputs[:, 0] * 255).round().byte().numpy(), pixels)
    assert data.test.labels[:5].tolist() == [7, 2, 1, 0, 4]
    assert data.names == tuple("0123456789")
