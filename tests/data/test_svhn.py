from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.io import savemat

from leaktight.core.errors import InvalidValue
from leaktight.data import Svhn
from leaktight.papers.datasets import need_set


def write(folder: Path, count: int = 20) -> np.ndarray:
    """Write both files as SVHN has them, and return the training images."""
    folder.mkdir(exist_ok=True)
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (32, 32, 3, count), dtype=np.uint8)
    for name, part in (("train_32x32.mat", images), ("test_32x32.mat", images[..., :10])):
        labels = (np.arange(part.shape[3]) % 10 + 1).astype(np.uint8)[:, None]
        savemat(folder / name, {"X": part, "y": labels}, do_compression=True)
    return images


def test_images_come_channels_first_and_class_10_is_the_digit_0(tmp_path: Path) -> None:
    images = write(tmp_path)
    data = Svhn(path=tmp_path).load()
    assert (data.shape, data.classes, data.names[0]) == ((3, 32, 32), 10, "0")
    assert data.train.labels.tolist() == [1, 2, 3, 4, 5, 6, 7, 8, 9, 0] * 2
    expected = torch.from_numpy(images[:, :, :, 3].copy()).permute(2, 0, 1) / 255
    torch.testing.assert_close(data.train.inputs[3], expected)
    assert len(data.test) == 10


def test_a_reproduction_finds_it_by_its_files(tmp_path: Path) -> None:
    write(tmp_path / "svhn")
    found = need_set(str(tmp_path), "svhn", train_limit=10)
    assert found.kind == "svhn"
    assert len(found.load().train) == 10
    (tmp_path / "svhn" / "test_32x32.mat").unlink()
    assert not Svhn.fits(tmp_path / "svhn")


def test_other_arrays_under_these_names_are_refused(tmp_path: Path) -> None:
    write(tmp_path)
    savemat(tmp_path / "train_32x32.mat", {"X": np.zeros((32, 32, 4), np.uint8), "y": np.ones((4, 1), np.uint8)})
    with pytest.raises(InvalidValue, match=r"must have colour images X, \(height, width, 3, images\)"):
        Svhn(path=tmp_path).load()
    savemat(tmp_path / "train_32x32.mat", {"X": np.zeros((32, 32, 3, 2), np.uint8), "y": np.array([[1], [77]])})
    with pytest.raises(InvalidValue, match="77"):
        Svhn(path=tmp_path).load()
