from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from leaktight.core import registry
from leaktight.data import (
    Attributes,
    Cifar,
    Csv,
    Digits,
    Factory,
    Idx,
    ImageFolder,
    Npz,
    Parity,
    Photos,
    Source,
    from_text,
)


@pytest.mark.parametrize(("text", "source"), [("digits", Digits()), ("photos", Photos()), ("parity", Parity())])
def test_bundled_names(text, source):
    assert from_text(text) == source


def make_npz(folder: Path) -> Path:
    np.savez(folder / "set.npz", a=np.zeros(3))
    return folder / "set.npz"


def make_csv(folder: Path) -> Path:
    (folder / "set.csv").write_text("a,label\n1,2\n")
    return folder / "set.csv"


def make_csv_gz(folder: Path) -> Path:
    (folder / "set.csv.gz").write_bytes(b"")
    return folder / "set.csv.gz"


def make_idx(folder: Path) -> Path:
    (folder / "train-images-idx3-ubyte.gz").write_bytes(b"")
    return folder


def make_cifar(folder: Path) -> Path:
    (folder / "data_batch_1.bin").write_bytes(b"")
    return folder


def make_cifar_hundred(folder: Path) -> Path:
    inner = folder / "cifar-100-binary"
    inner.mkdir()
    (inner / "train.bin").write_bytes(b"")
    return folder


def make_images(folder: Path) -> Path:
    (folder / "cat").mkdir()
    Image.new("RGB", (4, 4)).save(folder / "cat" / "1.jpeg")
    return folder


def make_parted_images(folder: Path) -> Path:
    (folder / "train" / "cat").mkdir(parents=True)
    Image.new("RGB", (4, 4)).save(folder / "train" / "cat" / "1.PNG")
    return folder


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (make_npz, Npz),
        (make_csv, Csv),
        (make_csv_gz, Csv),
        (make_idx, Idx),
        (make_cifar, Cifar),
        (make_cifar_hundred, Cifar),
        (make_images, ImageFolder),
        (make_parted_images, ImageFolder),
    ],
)
def test_paths(tmp_path, monkeypatch, make, kind):
    path = make(tmp_path)
    assert from_text(str(path)) == kind(path=path)
    monkeypatch.setenv("HOME", str(path.parent))
    home = from_text(f"~/{path.name}")
    assert isinstance(home, kind)
    assert home.place == path
    assert home.path == f"~/{path.name}"


def test_a_label_can_follow_a_table(tmp_path):
    path = make_csv(tmp_path)
    assert from_text(f"{path}:default.payment") == Csv(path=path, label="default.payment")


def test_a_reference():
    assert from_text("my_project.data:load") == Factory(function="my_project.data:load")


def test_relative_paths_stay_as_given(tmp_path, monkeypatch):
    make_npz(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert from_text("set.npz") == Npz(path="set.npz")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("digts", ("There is no data named `digts`", "Did you mean `digits`?", "`package.module:function`")),
        ("zzz", ("`digits`, `parity`, `photos`",)),
        ("", ("There is no data named ``",)),
        ("idx", ("data kind `idx` needs `path`",)),
        ("factory", ("data kind `factory` needs `function`",)),
        ("attributes", ("data kind `attributes` needs `path` and `label` and `private_property`",)),
        ("nowhere/set.npz", ("There is no file or folder `nowhere/set.npz`", "IDX files")),
        ("set.npz", ("There is no file or folder `set.npz`",)),
        ("none.csv:label", ("There is no file or folder `none.csv`",)),
    ],
)
def test_unknown_texts(tmp_path, monkeypatch, text, words, says):
    monkeypatch.chdir(tmp_path)
    with says(*words):
        from_text(text)


def test_a_path_that_holds_nothing_known(tmp_path, says):
    with says(f"The data at `{tmp_path}` must be an .npz or .csv file", "`package.module:function`"):
        from_text(str(tmp_path))
    (tmp_path / "model.pt").write_bytes(b"")
    with says("Got none of these"):
        from_text(str(tmp_path / "model.pt"))


@pytest.mark.parametrize(
    "source",
    [
        Digits(size=32),
        Photos(classes=4),
        Idx(path="a", train_limit=3),
        Cifar(path="a", labels="coarse"),
        Npz(path="a", x="i", y="j", scale=16),
        ImageFolder(path="a", channels=1),
        Csv(path="a", ignore=("id",), separator=";"),
        Csv(path="a", private_property="sex", private_property_positive="f"),
        Attributes(path="a", table="b.csv", label=("Hat", "Cap"), private_property="Male"),
        Parity(size=16),
        Factory(function="a.b:c"),
    ],
    ids=lambda source: source.kind,
)
def test_every_source_is_registered_and_goes_to_json_and_back(source):
    assert registry.classes("data")[source.kind] is type(source)
    again = Source.model_validate(source.to_dict())
    assert again == source
    assert again.key == source.key


@pytest.mark.parametrize(
    ("name", "shape", "classes"),
    [
        ("mnist", (1, 28, 28), 10),
        ("cifar10/cifar10_10k_2k.npz", (3, 32, 32), 10),
        ("olivetti/olivetti_64x64.npz", (1, 64, 64), 40),
    ],
)
def test_real_paths(real, name, shape, classes):
    found = from_text(str(real(name)))
    data = type(found).model_validate({**found.to_dict(), "train_limit": 200, "test_limit": 100}).load()
    assert (data.shape, data.classes) == (shape, classes)
    assert (len(data.train), len(data.test)) == (200, min(100, 80 if classes == 40 else 100))
