"""IDX: the format of MNIST and its relatives."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from leaktight.core.errors import InvalidValue
from leaktight.data.files import ImageSource, Location, Part, listing, read_bytes
from leaktight.data.labels import as_ids, number
from leaktight.data.source import Data

_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_PARTS = {"train": "train", "test": "t10k|test"}
_HOLDS = {"images": "idx3", "labels": "idx1"}


class Idx(ImageSource):
    """A folder of four IDX files, plain or `.gz`: MNIST, Fashion-MNIST, KMNIST, EMNIST.

    The files are found by their usual names (`train-images-idx3-ubyte.gz`, `t10k-labels-idx1-ubyte`, ...) or named one
    by one. Label ids are numbered from 0 in their order.

    Args:
        path: the folder.
        train_limit: keep at most so many training examples, each class in its share; None keeps all.
        test_limit: the same for test examples.
        size: the side in pixels that images are brought to; None leaves them as they are.
        resize: `bicubic` or `nearest`.
        train_images: the file in the folder; empty finds it by its usual name. Likewise the other three.
        train_labels: see `train_images`.
        test_images: see `train_images`.
        test_labels: see `train_images`.

    Example:
        >>> print(Idx(path="mnist", train_limit=1000))
        idx(path='mnist', train_limit=1000)

    References:
        Y. LeCun, C. Cortes, C. Burges, "The MNIST database of handwritten digits", 1998: file formats.
    """

    kind: Literal["idx"] = "idx"
    train_images: Location = ""
    train_labels: Location = ""
    test_images: Location = ""
    test_labels: Location = ""

    @classmethod
    def fits(cls, path: Path) -> bool:
        """Whether this is a folder with an IDX file of training images."""
        return path.is_dir() and bool(_candidates(path, "train", "images"))

    def read(self) -> Data:
        """Read the four files."""
        train = self._part("train", self.train_images, self.train_labels)
        test = self._part("test", self.test_images, self.test_labels)
        train_labels, test_labels, names = number(train.labels, test.labels, str(self))
        return self.assemble(
            Part(train.inputs, train_labels), Part(test.inputs, test_labels), len(names), names, "channels_first"
        )

    def _part(self, part: str, images: str, labels: str) -> Part:
        image_file = self.place / images if images else _find(self.place, part, "images")
        label_file = self.place / labels if labels else _find(self.place, part, "labels")
        inputs = read_idx(image_file, dimensions=3)
        ids = as_ids(read_idx(label_file, dimensions=1), f"The labels in `{label_file}`")
        if len(inputs) != len(ids):
            raise InvalidValue(
                f"The files `{image_file}` and `{label_file}` must have a label for each image. Got {len(inputs)} "
                f"images and {len(ids)} labels."
            )
        return Part(inputs, ids)


def read_idx(path: Path, dimensions: int) -> NDArray[Any]:
    """Return the array in an IDX file: two zero bytes, a type, the number of dimensions, their sizes, then the numbers.

    Args:
        path: the file, unpacked on the way if its name ends in `.gz`.
        dimensions: how many dimensions it must have.
    """
    content = read_bytes(path)
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] not in _TYPES:
        raise InvalidValue(
            f"The file `{path}` must start with the magic number of an IDX file. Got bytes {content[:4].hex(' ')!r} "
            "instead."
        )
    if content[3] != dimensions:
        raise InvalidValue(f"The IDX file `{path}` must have {dimensions} dimensions. Got {content[3]} instead.")
    start = 4 + 4 * dimensions
    sizes = [int.from_bytes(content[at : at + 4], "big") for at in range(4, start, 4)]
    kind = np.dtype(_TYPES[content[2]])
    promised = start + math.prod(sizes) * kind.itemsize
    if len(content) != promised:
        fault = "truncated" if len(content) < promised else "too long"
        raise InvalidValue(
            f"The IDX file `{path}` is {fault}: its header promises {promised} bytes. Got {len(content)} instead; "
            "fetch it again."
        )
    return np.frombuffer(content, dtype=kind, offset=start).reshape(sizes).astype(kind.newbyteorder("="))


def _candidates(folder: Path, part: str, holds: str) -> list[Path]:
    pattern = re.compile(rf"(?:^|[-_.])(?:{_PARTS[part]})[-_]{holds}[-.]{_HOLDS[holds]}-ubyte(?:\.gz)?$", re.IGNORECASE)
    entries = [entry for entry in listing(folder) if pattern.search(entry.name)]
    # An unpacked file beside its archive is the same data.
    names = {entry.name for entry in entries}
    return [entry for entry in entries if entry.suffix != ".gz" or entry.stem not in names]


def _find(folder: Path, part: str, holds: str) -> Path:
    candidates = _candidates(folder, part, holds)
    if len(candidates) == 1:
        return candidates[0]
    prefix = "train" if part == "train" else "t10k"
    usual = f"{prefix}-{holds}-{_HOLDS[holds]}-ubyte"
    got = f"several: {', '.join(entry.name for entry in candidates)}" if candidates else "none"
    raise InvalidValue(
        f"The folder `{folder}` must hold one file like `{usual}` or `{usual}.gz`. Got {got}; name it by "
        f"`{part}_{holds}` if it is called otherwise."
    )
