from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from leaktight.core.errors import InvalidValue
from leaktight.papers.datasets import find_set, need_folder, need_set


def archive(folder: Path) -> None:
    folder.mkdir()
    images, labels = np.zeros((20, 4, 4, 3), np.uint8), np.arange(20) % 2
    np.savez(folder / "set.npz", x_train=images, y_train=labels, x_test=images[:4], y_test=labels[:4])
    (folder / "README.txt").write_text("about")


def idx(folder: Path) -> None:
    folder.mkdir()
    for part, count in (("train", 20), ("t10k", 4)):
        images = b"\0\0\x08\x03" + b"".join(n.to_bytes(4, "big") for n in (count, 4, 4)) + bytes(16 * count)
        labels = b"\0\0\x08\x01" + count.to_bytes(4, "big") + bytes(n % 2 for n in range(count))
        (folder / f"{part}-images-idx3-ubyte.gz").write_bytes(gzip.compress(images))
        (folder / f"{part}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(labels))


@pytest.mark.parametrize(("write", "kind"), [(archive, "npz"), (idx, "idx")])
def test_a_set_is_found_whatever_its_format(tmp_path: Path, write: object, kind: str) -> None:
    assert callable(write)
    write(tmp_path / "cifar10")
    found = need_set(str(tmp_path), "cifar10", train_limit=10, test_limit=2)
    assert found.kind == kind
    data = found.load()
    assert (len(data.train), len(data.test)) == (10, 2)
    assert find_set(str(tmp_path), "cifar10") is not None


def test_what_is_not_there_or_cannot_be_read_is_no_set(tmp_path: Path) -> None:
    (tmp_path / "mnist").mkdir()
    (tmp_path / "mnist" / "notes.txt").write_text("nothing")
    assert find_set(str(tmp_path), "mnist") is None
    assert find_set(str(tmp_path), "svhn") is None


def test_a_missing_set_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match="must have a sub-folder `mnist` with that data set"):
        need_set(str(tmp_path), "mnist")


def test_a_missing_folder_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match=r"The scale `small` needs real data sets. Name their folder with `--data`."):
        need_folder("", "small")
    with pytest.raises(InvalidValue, match="There is no folder"):
        need_folder(str(tmp_path / "nowhere"), "small")
    need_folder(str(tmp_path), "small")
