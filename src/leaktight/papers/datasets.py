"""Data sets in a folder: each in a sub-folder of its own name, in whichever format it comes."""

from __future__ import annotations

from pathlib import Path

from leaktight.core import registry
from leaktight.core.errors import InvalidValue
from leaktight.data.files import ImageSource, listing
from leaktight.data.source import Source


def find_set(
    folder: str, name: str, train_limit: int | None = None, test_limit: int | None = None
) -> ImageSource | None:
    """Return the data set in a sub-folder; None if it is not there.

    The sub-folder may hold IDX files, CIFAR batches or the files of SVHN, or one file that can be read, such as an
    `.npz` archive.

    Args:
        folder: where the sub-folders are.
        name: the sub-folder.
        train_limit: keep at most so many training examples.
        test_limit: keep at most so many test examples.
    """
    place = Path(folder).expanduser() / name
    if not place.is_dir():
        return None
    readers = [kind for kind in registry.classes(Source.family).values() if issubclass(kind, ImageSource)]
    for path in (place, *listing(place)):
        for reader in readers:
            if reader.fits(path):
                source: ImageSource = reader.model_validate(
                    {"path": path, "train_limit": train_limit, "test_limit": test_limit}
                )
                return source
    return None


def need_folder(folder: str, scale: str) -> None:
    """Raise the error for a scale that needs real data and was given none, or a folder that is not there."""
    if not folder:
        raise InvalidValue(f"The scale `{scale}` needs real data sets. Name their folder with `--data`.")
    if not Path(folder).expanduser().is_dir():
        raise InvalidValue(f"There is no folder `{folder}`. Check what `--data` names.")


def need_set(folder: str, name: str, train_limit: int | None = None, test_limit: int | None = None) -> ImageSource:
    """Return the data set in a sub-folder, or raise an error that says what is missing there."""
    source = find_set(folder, name, train_limit, test_limit)
    if source is None:
        raise InvalidValue(
            f"The folder `{folder}` must have a sub-folder `{name}` with that data set: an .npz file, IDX files, "
            "CIFAR .bin batches or the .mat files of SVHN. It has none."
        )
    return source
