"""Images with attributes: what is learned, what is private, and who stays."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from leaktight.core import registry
from leaktight.data import Attributes
from leaktight.findings.redaction import without_places
from leaktight.plans.plan_file import read_plan

NAMES = ("Male", "Hat", "Cap", "Old", "Person")
COUNT = 60


def fact(name: str, number: int) -> int:
    """Return what is said of an image; its number is its grey value."""
    return {
        "Male": number % 2,
        "Hat": int(number % 5 in (0, 1)),
        "Cap": int(number % 5 in (1, 2)),
        "Old": int(number % 3 == 0),
        "Person": 7,
    }[name]


def rows() -> list[list[int]]:
    return [[fact(name, number) for name in NAMES] for number in range(COUNT)]


def archive(folder: Path, **changes) -> Path:
    images = np.tile(np.arange(COUNT, dtype=np.uint8)[:, None, None, None], (1, 6, 4, 3))
    members = {
        "images": images,
        "attributes": np.array(rows(), np.uint8),
        "attribute_names": np.array(NAMES),
        **changes,
    }
    np.savez(folder / "a.npz", **{name: array for name, array in members.items() if array is not None})
    return folder / "a.npz"


def pictures(folder: Path, name: str = "table.csv", column: str = "file") -> dict[str, Path]:
    (folder / "faces" / "some").mkdir(parents=True)
    lines = [",".join((NAMES[0], column, *NAMES[1:]))]
    for number, row in enumerate(rows()):
        Image.new("RGB", (4, 6), (number,) * 3).save(folder / "faces" / "some" / f"{number}.png")
        lines.append(",".join(map(str, (row[0], f"some/{number}.png", *row[1:]))))
    text = "\n".join(lines).encode()
    (folder / name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    return {"path": folder / "faces", "table": folder / name}


def numbers(batch) -> list[int]:
    """Return which images these are."""
    return (batch.inputs[:, 0, 0, 0] * 255).round().long().tolist()


def check(data, label, private) -> list[int]:
    for batch in (data.train, data.test):
        assert batch.labels.tolist() == [label(number) for number in numbers(batch)]
        assert batch.properties.tolist() == [private(number) for number in numbers(batch)]
    found = numbers(data.train) + numbers(data.test)
    assert len(set(found)) == len(found)
    return sorted(found)


@pytest.fixture(params=["archive", "folder", "packed table"])
def places(request, tmp_path):
    if request.param == "archive":
        return {"path": archive(tmp_path)}
    return pictures(tmp_path, "table.csv" if request.param == "folder" else "table.csv.gz")


def test_one_attribute_is_a_yes_or_no_task(places):
    data = Attributes(**places, label="Male", private_property="Old").load()
    assert (data.shape, data.classes, data.names) == ((3, 6, 4), 2, ("not Male", "Male"))
    assert (len(data.train), len(data.test), data.property_name) == (42, 18, "Old")
    assert check(data, lambda n: n % 2, lambda n: int(n % 3 == 0)) == list(range(COUNT))
    assert torch.bincount(data.test.labels).tolist() == [9, 9]


def test_several_attributes_are_a_class_each_and_who_has_none_or_two_is_left_out(places):
    data = Attributes(**places, label=("Hat", "Cap"), private_property=("Old", "Male"), test_share=0.25).load()
    assert (data.names, data.property_name) == (("Hat", "Cap"), "Old or Male")
    found = check(data, lambda n: {0: 0, 2: 1}[n % 5], lambda n: int(n % 3 == 0 or n % 2 == 1))
    assert found == [n for n in range(COUNT) if n % 5 in (0, 2)]
    assert (len(data.test), torch.bincount(data.test.labels).tolist()) == (6, [3, 3])


def test_classes_come_in_the_given_order(places):
    data = Attributes(**places, label=("Cap", "Hat"), private_property="Male").load()
    assert data.names == ("Cap", "Hat")
    check(data, lambda n: {0: 1, 2: 0}[n % 5], lambda n: n % 2)


def test_limits_keep_the_examples_properties(places):
    whole = Attributes(**places, label="Male", private_property="Old").load()
    held = set(numbers(whole.test))
    data = Attributes(**places, label="Male", private_property="Old", train_limit=13, test_limit=8).load()
    assert (len(data.train), len(data.test)) == (13, 8)
    check(data, lambda n: n % 2, lambda n: int(n % 3 == 0))
    assert set(numbers(data.test)) <= held
    assert not set(numbers(data.train)) & held


def test_size_is_that_of_the_middle_square(places):
    data = Attributes(**places, label="Male", private_property="Old", size=8).load()
    assert data.shape == (3, 8, 8)
    check(data, lambda n: n % 2, lambda n: int(n % 3 == 0))


def test_another_column_can_name_the_files(tmp_path, says):
    places = pictures(tmp_path, column="picture")
    assert len(Attributes(**places, file="picture", label="Male", private_property="Old").load().train) == 42
    with says("has no column `picturs`. Did you mean `picture`?"):
        Attributes(**places, file="picturs", label="Male", private_property="Old").load()


def test_only_the_images_that_are_left_are_opened(tmp_path, says):
    places = pictures(tmp_path)
    used = Attributes(**places, label=("Hat", "Cap"), private_property="Male")
    for number in range(COUNT):
        if number % 5 not in (0, 2):
            (places["path"] / "some" / f"{number}.png").unlink()
    assert len(used.load().train) == 17
    (places["path"] / "some" / "10.png").unlink()
    with says("There is no file or folder", "10.png"):
        used.load()


def test_images_of_several_shapes_need_a_size(tmp_path, says):
    places = pictures(tmp_path)
    Image.new("RGB", (9, 9)).save(places["path"] / "some" / "0.png")
    with says("must be of one shape", "(3, 6, 4) and (3, 9, 9)", "set a `size`"):
        Attributes(**places, label="Male", private_property="Old").load()
    assert Attributes(**places, label="Male", private_property="Old", size=4).load().shape == (3, 4, 4)


def test_a_changed_table_is_read_again(tmp_path):
    places = pictures(tmp_path)
    source = Attributes(**places, label="Male", private_property="Old")
    assert len(source.load().train) == 42
    lines = places["table"].read_text().splitlines()
    places["table"].write_text("\n".join(lines[:41]))
    assert len(source.load().train) == 28


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"label": "Mal", "private_property": "Old"}, ("There is no attribute named `Mal`. Did you mean `Male`?",)),
        (
            {"label": "Male", "private_property": ("Old", "Blak")},
            ("no attribute named `Blak`", "Known are: `Cap`, `Hat`, `Male`"),
        ),
        (
            {"label": "Male", "private_property": "Person"},
            ("attribute `Person`", "must be 0 or 1", "Got `7` at example 0"),
        ),
    ],
)
def test_wrong_attributes(places, settings, words, says):
    with says(*words):
        Attributes(**places, **settings).load()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"images": None}, ("must have a member `images`", "`attributes` and `attribute_names`")),
        ({"attribute_names": None}, ("must have a member `attribute_names`",)),
        (
            {"attributes": np.zeros((9, 5))},
            ("a row of attributes for each image", "(60, 6, 4, 3)", "(9, 5) and 5 names"),
        ),
        ({"attribute_names": np.array(["Male"])}, ("a name for each attribute", "1 names")),
        ({"images": np.zeros((COUNT, 5), np.uint8)}, ("images of shape (60, 5)",)),
        ({"attributes": np.full((COUNT, 5), 1)}, ("examples of each class alone", "none of `not Male`")),
    ],
)
def test_wrong_archives(tmp_path, changes, words, says):
    with says(*words):
        Attributes(path=archive(tmp_path, **changes), label="Male", private_property="Old").load()


def test_an_archive_has_no_table_and_a_folder_has_one(tmp_path, says):
    places = pictures(tmp_path)
    with says("`table` of attributes must be set for the folder"):
        Attributes(path=places["path"], label="Male", private_property="Old").load()
    with says("`path` of attributes must be a folder of images if there is a `table`", "a.npz"):
        Attributes(path=archive(tmp_path), table=places["table"], label="Male", private_property="Old").load()
    with says("There is no file or folder", "none.npz"):
        Attributes(path=tmp_path / "none.npz", label="Male", private_property="Old").load()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"label": "Male"}, ("`private_property` of attributes is missing",)),
        ({"label": (), "private_property": "Old"}, ("`label` of attributes must be a list of at least 1",)),
        ({"label": ("Hat", "Old"), "private_property": "Old"}, ("another one than the label", "Got `Old` for both")),
        ({"label": "Male", "private_property": "Old", "test_share": 0}, ("`test_share` of attributes", "above 0")),
    ],
)
def test_wrong_settings(settings, words, says):
    with says(*words):
        Attributes(path="a.npz", **settings)


def test_a_path_alone_never_means_it_and_one_name_is_a_list_of_one(tmp_path):
    assert not Attributes.fits(archive(tmp_path))
    one, listed = (Attributes(path="a", label=label, private_property="Old") for label in ("Male", ["Male"]))
    assert one == listed
    assert registry.classes("data")["attributes"] is Attributes


@pytest.mark.parametrize("label", ['"Male"', '["Hat", "Cap"]'])
def test_a_plan_file_can_name_them(tmp_path, label):
    (tmp_path / "a.toml").write_text(
        f"""
        [scenario]
        kind = "federated"
        data = {{ kind = "attributes", path = "a.npz", label = {label}, private_property = "Old" }}
        model = {{ kind = "face_alexnet" }}
        [[attacks]]
        preset = "idlg2020"
        """
    )
    [scenario] = read_plan(tmp_path / "a.toml").scenarios.values()
    assert scenario.data == Attributes(path="a.npz", label=json.loads(label), private_property="Old")


def test_both_places_are_withheld_from_what_is_passed_on():
    told = without_places(Attributes(path="anna/faces", table="anna/table.csv", label="Male", private_property="Old"))
    assert "anna" not in json.dumps(told)
    assert (told["table"], told["private_property"]) == ("withheld", ["Old"])


LFW = "lfw/lfw_faces_62x47.npz"


def test_gender_and_race_of_real_faces(real):
    data = Attributes(path=real(LFW), label="Male", private_property="Black").load()
    assert (data.shape, data.names) == ((3, 62, 47), ("not Male", "Male"))
    assert (len(data.train), len(data.test)) == (2800, 1200)
    assert torch.bincount(torch.cat([data.train.labels, data.test.labels])).tolist() == [951, 3049]
    assert [int(batch.properties.sum()) for batch in (data.train, data.test)] == [392, 150]


def test_glasses_and_gender_of_real_faces(real):
    kinds = ("Eyeglasses", "Sunglasses", "No_Eyewear")
    data = Attributes(path=real(LFW), label=kinds, private_property="Male").load()
    assert torch.bincount(data.train.labels).tolist() == [414, 98, 1986]
    assert torch.bincount(data.test.labels).tolist() == [178, 42, 850]
    assert [int(batch.properties.sum()) for batch in (data.train, data.test)] == [1874, 812]
