from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from leaktight.data import Cifar, Npz


def records(rng: np.random.Generator, labels: np.ndarray) -> np.ndarray:
    """Return rows of label bytes and 3,072 pixels."""
    return np.concatenate([labels.astype(np.uint8), rng.integers(0, 256, (len(labels), 3072), dtype=np.uint8)], axis=1)


def write_ten(folder: Path, batches: int = 2, each: int = 20) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    folder.mkdir(exist_ok=True)
    labels = np.arange(each)[:, None] % 10
    train = [records(rng, labels) for _ in range(batches)]
    for number, batch in enumerate(train):
        (folder / f"data_batch_{number + 1}.bin").write_bytes(batch.tobytes())
    test = records(rng, labels[:10])
    (folder / "test_batch.bin").write_bytes(test.tobytes())
    return np.concatenate(train), test


def write_hundred(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    labels = np.stack([np.arange(100) % 20, np.arange(100)], axis=1)
    train, test = records(rng, labels), records(rng, labels)
    (folder / "train.bin").write_bytes(train.tobytes())
    (folder / "test.bin").write_bytes(test.tobytes())
    return train, test


def test_ten_classes(tmp_path):
    train, test = write_ten(tmp_path)
    data = Cifar(path=tmp_path).load()
    assert data.shape == (3, 32, 32)
    assert data.names[6] == "frog"
    assert data.train.labels.tolist() == train[:, 0].tolist()
    np.testing.assert_array_equal((data.train.inputs * 255).round().byte().flatten(1).numpy(), train[:, 1:])
    np.testing.assert_array_equal((data.test.inputs * 255).round().byte().flatten(1).numpy(), test[:, 1:])


def test_colours_are_planes_row_by_row(tmp_path):
    write_ten(tmp_path)
    one = np.zeros(3073, np.uint8)
    one[1 + 1024 + 32 * 2 + 5] = 255
    (tmp_path / "test_batch.bin").write_bytes(one.tobytes())
    pixel = Cifar(path=tmp_path).load().test.inputs[0].nonzero().tolist()
    assert pixel == [[1, 2, 5]]


def test_the_folder_that_the_archive_unpacks_to_is_found(tmp_path):
    write_ten(tmp_path / "cifar-10-batches-bin")
    assert Cifar.fits(tmp_path)
    assert len(Cifar(path=tmp_path).load().train) == 40


@pytest.mark.parametrize(("labels", "classes", "column"), [("fine", 100, 1), ("coarse", 20, 0)])
def test_hundred_classes(tmp_path, labels, classes, column):
    train, _ = write_hundred(tmp_path)
    data = Cifar(path=tmp_path, labels=labels).load()
    assert data.classes == classes
    assert data.train.labels.tolist() == train[:, column].tolist()
    np.testing.assert_array_equal((data.train.inputs * 255).round().byte().flatten(1).numpy(), train[:, 2:])


def test_names_of_the_hundred_are_read_if_there(tmp_path, says):
    write_hundred(tmp_path)
    file = tmp_path / "fine_label_names.txt"
    file.write_text("\n".join(f"thing-{number}" for number in range(100)) + "\n")
    assert Cifar(path=tmp_path).load().names[41] == "thing-41"
    file.write_text("apple\n")
    with says("must hold 100 class names", "Got 1"):
        Cifar(path=tmp_path).load()


def test_limits_keep_all_classes(tmp_path):
    write_ten(tmp_path)
    data = Cifar(path=tmp_path, train_limit=10, test_limit=5, size=16).load()
    assert sorted(data.train.labels.tolist()) == list(range(10))
    assert data.test.inputs.shape == (5, 3, 16, 16)


def test_wrong_files(tmp_path, says):
    with says("`data_batch_1.bin`", "`train.bin`", "Got neither"):
        Cifar(path=tmp_path).load()
    write_ten(tmp_path)
    file = tmp_path / "data_batch_2.bin"
    whole = file.read_bytes()
    file.write_bytes(whole[:-1])
    with says("data_batch_2.bin", "whole records of 3073 bytes", f"Got {len(whole) - 1} bytes"):
        Cifar(path=tmp_path).load()
    file.write_bytes(b"")
    with says("Got 0 bytes"):
        Cifar(path=tmp_path).load()
    file.write_bytes(whole[: 3073 * 2] + b"\x0a" + whole[3073 * 2 + 1 :])
    with says("data_batch_2.bin", "labels from 0 to 9", "Got `10` at example 2"):
        Cifar(path=tmp_path).load()
    file.write_bytes(whole)
    (tmp_path / "test_batch.bin").unlink()
    with says("There is no file or folder", "test_batch.bin"):
        Cifar(path=tmp_path).load()


def test_hundred_is_not_taken_for_ten(tmp_path, says):
    write_hundred(tmp_path)
    (tmp_path / "train.bin").rename(tmp_path / "data_batch_1.bin")
    with says("whole records of 3073 bytes"):
        Cifar(path=tmp_path).load()


def test_binary_and_npz_give_the_same_images(real, tmp_path):
    source = real("cifar10/cifar10_10k_2k.npz")
    with np.load(source) as archive:
        images, labels = archive["x_test"][:300], archive["y_test"][:300]
    rows = np.concatenate([labels[:, None], images.transpose(0, 3, 1, 2).reshape(300, -1)], axis=1).astype(np.uint8)
    (tmp_path / "data_batch_1.bin").write_bytes(rows[:200].tobytes())
    (tmp_path / "test_batch.bin").write_bytes(rows[200:].tobytes())
    np.savez(
        tmp_path / "same.npz", x_train=images[:200], y_train=labels[:200], x_test=images[200:], y_test=labels[200:]
    )
    binary, archive = Cifar(path=tmp_path).load(), Npz(path=tmp_path / "same.npz").load()
    assert binary.train.inputs.equal(archive.train.inputs)
    assert binary.test.labels.equal(archive.test.labels)
