from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from leaktight.core.errors import InvalidValue
from leaktight.papers.layer_leakage.sources import find_faces, need_faces


def test_an_archive_with_attributes_is_found(sets: str) -> None:
    found = need_faces(sets, "LFW", label="Male", private_property="Black", size=8)
    assert (Path(found.path).name, found.table, found.label, found.private_property) == (
        "faces.npz",
        "",
        ("Male",),
        ("Black",),
    )
    data = found.load()
    assert (data.shape, data.property_name, len(data.train) + len(data.test)) == ((3, 8, 8), "Black", 400)


@pytest.mark.parametrize("packed", [False, True])
def test_a_table_beside_a_folder_of_images_will_do(tmp_path: Path, packed: bool) -> None:
    place = tmp_path / "celeba"
    (place / "images").mkdir(parents=True)
    lines = ["image_id,Male,Eyeglasses"]
    for number in range(20):
        Image.fromarray(np.full((8, 8, 3), number, np.uint8)).save(place / "images" / f"{number}.png")
        lines.append(f"{number}.png,{number % 2},{number // 10}")
    text = "\n".join(lines).encode()
    (place / ("list.csv.gz" if packed else "list.csv")).write_bytes(gzip.compress(text) if packed else text)
    found = find_faces(str(tmp_path), "CelebA", label="Eyeglasses", private_property="Male")
    assert found is not None
    assert (found.file, Path(found.path).name) == ("image_id", "images")
    data = found.load()
    assert (len(data.train), data.names, data.property_name) == (14, ("not Eyeglasses", "Eyeglasses"), "Male")


def test_what_is_not_there_is_none_or_one_sentence(tmp_path: Path) -> None:
    assert find_faces(str(tmp_path), "PubFig", label="Male", private_property="Black") is None
    (tmp_path / "pubfig").mkdir()
    (tmp_path / "pubfig" / "list.csv").write_text("file,Male\n")
    assert find_faces(str(tmp_path), "PubFig", label="Male", private_property="Black") is None
    with pytest.raises(InvalidValue, match="must have a sub-folder `lfw` with faces and their attributes"):
        need_faces(str(tmp_path), "LFW", label="Male", private_property="Black")
