"""Faces with attributes in a folder: LFW in the sub-folder `lfw`, CelebA in `celeba`, PubFig in `pubfig`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from leaktight.core.errors import InvalidValue
from leaktight.data.attributes import Attributes
from leaktight.data.files import listing, open_data
from leaktight.data.table import LARGEST_TABLE, text_lines

LFW, CELEBA, PUBFIG = "LFW", "CelebA", "PubFig"
FOLDERS = {LFW: "lfw", CELEBA: "celeba", PUBFIG: "pubfig"}
_IMAGES = "images"


def find_faces(folder: str, name: str, **settings: Any) -> Attributes | None:
    """Return a set of faces; None if it is not there.

    The sub-folder holds an `.npz` archive with attributes; or a `.csv` or `.csv.gz` table whose first column names the
    files, with 0 or 1 in all others, and the images in a sub-folder `images`.

    Args:
        folder: where the sub-folders are.
        name: `LFW`, `CelebA` or `PubFig`.
        settings: of the source: at least which attribute is learned and which one is private.
    """
    place = Path(folder).expanduser() / FOLDERS[name]
    files = sorted(listing(place)) if place.is_dir() else []
    archive = next((path for path in files if path.suffix == ".npz"), None)
    if archive is not None:
        return Attributes(path=str(archive), **settings)
    table = next((path for path in files if path.name.endswith((".csv", ".csv.gz"))), None)
    if table is None or not (place / _IMAGES).is_dir():
        return None
    return Attributes(path=str(place / _IMAGES), table=str(table), file=_first_column(table), **settings)


def need_faces(folder: str, name: str, **settings: Any) -> Attributes:
    """Return a set of faces, or raise an error that says what is missing."""
    faces = find_faces(folder, name, **settings)
    if faces is None:
        raise InvalidValue(
            f"The folder `{folder}` must have a sub-folder `{FOLDERS[name]}` with faces and their attributes: an .npz "
            f"archive, or a .csv table and a folder `{_IMAGES}`. It has none."
        )
    return faces


def _first_column(table: Path) -> str:
    with open_data(table, LARGEST_TABLE) as content:
        return next(text_lines(content, table), "").strip().split(",")[0].strip('"')
