from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

from leaktight.data import Npz


def save(path: Path, **members) -> Path:
    file = path / "set.npz"
    np.savez(file, **members)
    return file


def four(train=8, test=4, shape=(6, 6, 3), ids=(0, 1), dtype=np.uint8) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    whole = rng.integers(0, 256, (train + test, *shape))
    inputs = whole.astype(np.uint8) if dtype == np.uint8 else (whole / 255).astype(dtype)
    labels = np.resize(np.array(ids), train + test)
    return {
        "x_train": inputs[:train],
        "y_train": labels[:train],
        "x_test": inputs[train:],
        "y_test": labels[train:],
    }


def test_four_members_of_colour_bytes(tmp_path):
    members = four()
    data = Npz(path=save(tmp_path, **members)).load()
    assert data.shape == (3, 6, 6)
    np.testing.assert_allclose(data.train.inputs.permute(0, 2, 3, 1).numpy(), members["x_train"] / 255, atol=1e-7)
    assert data.test.labels.tolist() == members["y_test"].tolist()
    assert data.names == ("0", "1")


@pytest.mark.parametrize(
    ("shape", "dtype", "found"),
    [
        ((6, 6), np.uint8, (1, 6, 6)),
        ((3, 6, 6), np.float32, (3, 6, 6)),
        ((6, 6, 1), np.float64, (1, 6, 6)),
        ((5,), np.float32, (5,)),
    ],
)
def test_other_layouts(tmp_path, shape, dtype, found):
    assert Npz(path=save(tmp_path, **four(shape=shape, dtype=dtype))).load().shape == found


def test_other_member_names(tmp_path):
    members = four()
    file = save(tmp_path, a=members["x_train"], b=members["y_train"], c=members["x_test"], d=members["y_test"])
    data = Npz(path=file, x_train="a", y_train="b", x_test="c", y_test="d").load()
    assert (len(data.train), len(data.test)) == (8, 4)


@pytest.mark.parametrize(
    ("x", "y"), [("images", "labels"), ("images", "target"), ("data", "target"), ("X", "y"), ("x", "y")]
)
def test_a_single_pair_is_split_by_class(tmp_path, x, y):
    members = {x: np.zeros((40, 4, 4), np.uint8), y: np.arange(40) % 4}
    data = Npz(path=save(tmp_path, **members), test_share=0.25).load()
    assert (len(data.train), len(data.test)) == (30, 10)
    assert torch.bincount(data.train.labels).sub(7.5).abs().max() <= 0.5


def test_a_named_pair_is_split_even_beside_four_members(tmp_path):
    members = four()
    file = save(tmp_path, **members)
    data = Npz(path=file, x="x_train", y="y_train", test_share=0.5).load()
    assert (len(data.train), len(data.test)) == (4, 4)


def test_strange_ids_are_numbered_and_keep_their_names(tmp_path):
    members = four(ids=(97, 6, 25))
    data = Npz(path=save(tmp_path, **members)).load()
    assert data.names == ("6", "25", "97")
    assert [int(data.names[label]) for label in data.train.labels] == members["y_train"].tolist()


def test_class_names_are_found_or_named(tmp_path, says):
    names = np.array(["bee", "couch"])
    file = save(
        tmp_path, **four(ids=(6, 25)), class_names=names, other=np.array(["x", "y"]), wrong=np.array(["a", "b", "c"])
    )
    assert Npz(path=file).load().names == ("bee", "couch")
    assert Npz(path=file, names="other").load().names == ("x", "y")
    with says("`wrong`", "must name each of the 2 classes"):
        Npz(path=file, names="wrong").load()


def test_unfitting_names_that_nobody_asked_for_are_left_aside(tmp_path):
    assert Npz(path=save(tmp_path, **four(ids=(6, 25)), class_names=np.array(["a"]))).load().names == ("6", "25")


def test_words_and_columns_as_labels(tmp_path):
    words = four(ids=("dog", "cat"))
    assert Npz(path=save(tmp_path, **words)).load().names == ("cat", "dog")
    columns = four()
    columns["y_train"], columns["y_test"] = columns["y_train"][:, None], columns["y_test"][:, None]
    assert Npz(path=save(tmp_path, **columns)).load().train.labels.shape == (8,)


def test_scale(tmp_path, says):
    members = four(shape=(6, 6), dtype=np.float32)
    members["x_train"], members["x_test"] = members["x_train"] * 16, members["x_test"] * 16
    file = save(tmp_path, **members)
    with says("pixels in [0, 1]"):
        Npz(path=file).load()
    assert Npz(path=file, scale=16).load().train.inputs.max() <= 1


def test_known_number_of_classes(tmp_path, says):
    file = save(tmp_path, **four(ids=(0, 7)))
    data = Npz(path=file, classes=10).load()
    assert data.classes == 10
    assert set(data.train.labels.tolist()) == {0, 7}
    with says("labels from 0 to 4", "Got `7` at example 1"):
        Npz(path=file, classes=5).load()


def test_size_is_for_images_only(tmp_path, says):
    assert Npz(path=save(tmp_path, **four()), size=4).load().shape == (3, 4, 4)
    with says("`size` of npz", "left out for a table"):
        Npz(path=save(tmp_path, **four(shape=(5,), dtype=np.float32)), size=4).load()


def test_a_property_beside_a_pair_is_one_member_and_follows_its_examples(tmp_path):
    marks = np.arange(40, dtype=np.uint8)
    members = {"images": np.tile(marks[:, None, None], (1, 4, 4)), "labels": marks % 4, "old": marks >= 15}
    data = Npz(path=save(tmp_path, **members), private_property="old", train_limit=12, test_limit=6).load()
    assert data.property_name == "old"
    assert (len(data.train), len(data.test)) == (12, 6)
    for batch in (data.train, data.test):
        found = (batch.inputs[:, 0, 0, 0] * 255).round().long()
        assert torch.equal(batch.properties, (found >= 15).long())
        assert torch.equal(batch.labels, found % 4)


def test_a_property_beside_four_members_is_two_and_nothing_else_changes(tmp_path):
    members = four(ids=("dog", "cat"))
    private = {"old_train": np.array([[1.0], [0.0]] * 4), "old_test": np.array([0, 1, 1, 0])}
    file = save(tmp_path, **members, **private)
    data, plain = Npz(path=file, private_property="old").load(), Npz(path=file).load()
    assert (data.train.properties.tolist(), data.test.properties.tolist()) == ([1, 0] * 4, [0, 1, 1, 0])
    assert torch.equal(data.train.inputs, plain.train.inputs)
    assert torch.equal(data.test.labels, plain.test.labels)
    assert (plain.property_name, plain.train.properties) == ("", None)


@pytest.mark.parametrize(
    ("private", "words"),
    [
        ({"old_train": np.zeros(8)}, ("must have a member `old_test`", "with `_train` and `_test` added")),
        ({"old": np.zeros(12)}, ("must have a member `old_train`", "The `private_property` of npz")),
        ({"old_train": np.zeros(7), "old_test": np.zeros(4)}, ("property `old_train`", "each of 8 examples", "Got 7")),
        ({"old_train": np.arange(8), "old_test": np.zeros(4)}, ("`old_train`", "0 or 1", "Got `2` at example 2")),
        ({"old_train": np.full(8, 0.5), "old_test": np.zeros(4)}, ("`old_train`", "fractions or NaN")),
        ({"old_train": np.arange(8) % 2, "old_test": np.zeros(4)}, ("test data", "with and without the property")),
    ],
)
def test_wrong_properties(tmp_path, private, words, says):
    with says(*words):
        Npz(path=save(tmp_path, **four(), **private), private_property="old").load()


def changed(**changes):
    return {**four(), **changes}


@pytest.mark.parametrize(
    ("members", "words"),
    [
        (
            {"x_train": np.zeros(1), "x_tst": np.zeros(1)},
            ("must have a member `y_train`", "Known are: `x_train`, `x_tst`."),
        ),
        ({"pixels": np.zeros(1)}, ("must have a member `x_train`", "`pixels`", "one pair by `x` and `y`")),
        (
            changed(y_test=np.array([0, 1, 0])),
            ("`x_test` and `y_test`", "a label for each example", "(4, 6, 6, 3) and (3,)"),
        ),
        (changed(y_test=np.array([0, 1, 0, 5])), ("occur in training", "`5`")),
        (changed(y_train=np.eye(8)), ("`y_train`", "one number or word", "(8, 8)")),
        (changed(y_train=np.full(8, 0.5)), ("`y_train`", "whole numbers or words")),
        (changed(x_test=np.zeros((4, 5, 6, 3), np.uint8)), ("shape (3, 6, 6)", "Got (3, 5, 6)")),
        (changed(x_train=np.full((8, 3, 6, 6), np.nan)), ("training data", "finite numbers", "8 examples")),
        (changed(x_train=np.array(["a"] * 8)), ("must be numbers",)),
        (changed(x_train=np.zeros((8, 6, 6, 4), np.uint8)), ("1 or 3 channels",)),
        (changed(x_train=np.array(3)), ("a label for each example", "()")),
        (changed(x_train=np.zeros((0, 6, 6, 3)), y_train=np.zeros(0, int)), ("test labels that occur in training",)),
        (changed(y_train=np.zeros(8, int), y_test=np.zeros(4, int)), ("at least 2 classes",)),
    ],
)
def test_wrong_members(tmp_path, members, words, says):
    with says(*words):
        Npz(path=save(tmp_path, **members)).load()


def test_a_pickle_is_never_opened(tmp_path, says):
    class Bomb:
        def __reduce__(self):
            return (pytest.fail, ("a pickle was opened",))

    file = save(tmp_path, **changed(y_train=np.array([Bomb()] * 8, dtype=object)))
    with says("without pickles"):
        Npz(path=file).load()


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA])
@pytest.mark.parametrize("harm", ["end", "middle"])
def test_a_damaged_archive(tmp_path, compression, harm, says):
    file = tmp_path / "set.npz"
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, array in four(train=100).items():
            member = io.BytesIO()
            np.save(member, array)
            archive.writestr(f"{name}.npy", member.getvalue())
    assert len(Npz(path=file).load().train) == 100
    content = file.read_bytes()
    file.write_bytes(content[:-100] if harm == "end" else content[:3000] + b"\x55" * 500 + content[3500:])
    with says(str(file), "whole NumPy archive"):
        Npz(path=file).load()


@pytest.mark.parametrize("content", [b"", b"hello", b"PK\x03\x04", b"\x80\x04K\x01."])
def test_something_else_under_the_name(tmp_path, content, says):
    file = tmp_path / "set.npz"
    file.write_bytes(content)
    with says(str(file), "whole NumPy archive"):
        Npz(path=file).load()


def test_a_single_array_under_the_name(tmp_path, says):
    with (tmp_path / "set.npz").open("wb") as file:
        np.save(file, np.zeros(3))
    with says("`numpy.savez`", "single array"):
        Npz(path=tmp_path / "set.npz").load()


def test_no_file(tmp_path, says):
    with says("There is no file or folder"):
        Npz(path=tmp_path / "none.npz").load()
    with says("cannot be read"):
        Npz(path=tmp_path).load()


def test_half_a_pair(says):
    with says("npz must have both `x` and `y` or neither"):
        Npz(path="a.npz", x="images")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"train_limit": 0}, ("`train_limit` of npz", "at least 1")),
        ({"test_share": 1.0}, ("`test_share` of npz", "below 1")),
        ({"scale": 0}, ("`scale` of npz", "above 0")),
        ({"layout": "NHWC"}, ("`layout` of npz", "'channels_last'")),
        ({"x_trian": "a"}, ("no setting `x_trian`", "`x_train`")),
    ],
)
def test_wrong_settings(changes, words, says):
    with says(*words):
        Npz(path="a.npz", **changes)


def test_olivetti(real):
    data = Npz(path=real("olivetti/olivetti_64x64.npz")).load()
    assert data.shape == (1, 64, 64)
    assert data.classes == 40
    assert torch.bincount(data.train.labels).tolist() == [8] * 40
    assert torch.bincount(data.test.labels).tolist() == [2] * 40


def test_six_classes_of_cifar_100(real):
    data = Npz(path=real("cifar100/cifar100_6classes.npz"), train_limit=60, test_limit=600).load()
    assert data.names == ("bee", "couch", "girl", "lawn_mower", "whale", "wolf")
    assert torch.bincount(data.train.labels).tolist() == [10] * 6
    assert data.shape == (3, 32, 32)
