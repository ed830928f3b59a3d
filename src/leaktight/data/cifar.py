"""CIFAR: the binary batches of CIFAR-10 and CIFAR-100."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from leaktight.core.errors import InvalidValue
from leaktight.data.files import ImageSource, Part, listing, read_bytes
from leaktight.data.labels import in_range
from leaktight.data.source import Data

_SHAPE = (3, 32, 32)
_PIXELS = 3 * 32 * 32
_TEN: tuple[str, ...] = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")


class Cifar(ImageSource):
    """A folder of CIFAR binary batches: one record per image, label bytes first, then a plane for each colour.

    CIFAR-10 is `data_batch_1.bin` to `data_batch_5.bin` (as many as are there) with `test_batch.bin`; CIFAR-100 is
    `train.bin` with `test.bin`. The folder itself or the one that the archive unpacks to inside it is read.

    Args:
        path: the folder.
        train_limit: keep at most so many training examples, each class in its share; None keeps all.
        test_limit: the same for test examples.
        size: the side in pixels that images are brought to; None leaves them at 32.
        resize: `bicubic` or `nearest`.
        labels: for CIFAR-100, the 100 `fine` classes or the 20 `coarse` ones.

    Example:
        >>> print(Cifar(path="cifar-10-batches-bin", test_limit=2000))
        cifar(path='cifar-10-batches-bin', test_limit=2000)

    References:
        A. Krizhevsky, "Learning Multiple Layers of Features from Tiny Images", 2009: binary version.
    """

    kind: Literal["cifar"] = "cifar"
    labels: Literal["fine", "coarse"] = "fine"

    @classmethod
    def fits(cls, path: Path) -> bool:
        """Whether this is a folder with binary batches."""
        return path.is_dir() and _home(path) is not None

    def read(self) -> Data:
        """Read all batches."""
        folder = _home(self.place)
        if folder is None:
            raise InvalidValue(
                f"The folder `{self.place}` must hold `data_batch_1.bin` (CIFAR-10) or `train.bin` (CIFAR-100). Got "
                "neither."
            )
        ten = sorted(folder.glob("data_batch_*.bin"))
        if ten:
            names, training, testing = _TEN, ten, [folder / "test_batch.bin"]
            label_bytes, label_at = 1, 0
        else:
            fine = self.labels == "fine"
            names = _names(folder / f"{self.labels}_label_names.txt", 100 if fine else 20)
            training, testing = [folder / "train.bin"], [folder / "test.bin"]
            label_bytes, label_at = 2, 1 if fine else 0
        train = _part(training, label_bytes, label_at, len(names))
        test = _part(testing, label_bytes, label_at, len(names))
        return self.assemble(train, test, len(names), names, "channels_first")


def read_batch(path: Path, label_bytes: int) -> NDArray[np.uint8]:
    """Return the records of a batch, one row each: label bytes, then 3,072 pixels.

    Args:
        path: the file.
        label_bytes: 1 for CIFAR-10, 2 for CIFAR-100 (coarse, then fine).
    """
    content = read_bytes(path)
    record = label_bytes + _PIXELS
    if not content or len(content) % record:
        raise InvalidValue(
            f"The file `{path}` must hold whole records of {record} bytes. Got {len(content)} bytes instead; it is "
            "truncated or of another kind."
        )
    return np.frombuffer(content, dtype=np.uint8).reshape(-1, record)


def _part(files: Sequence[Path], label_bytes: int, label_at: int, classes: int) -> Part:
    inputs: list[NDArray[Any]] = []
    labels: list[NDArray[np.int64]] = []
    for file in files:
        records = read_batch(file, label_bytes)
        labels.append(in_range(records[:, label_at], classes, f"The file `{file}`"))
        inputs.append(records[:, label_bytes:].reshape(-1, *_SHAPE))
    return Part(np.concatenate(inputs), np.concatenate(labels))


def _home(path: Path) -> Path | None:
    folders = [path, *(entry for entry in listing(path) if entry.is_dir() and entry.name.startswith("cifar"))]
    return next((f for f in folders if any(f.glob("data_batch_*.bin")) or (f / "train.bin").is_file()), None)


def _names(file: Path, classes: int) -> tuple[str, ...]:
    if not file.is_file():
        return tuple(map(str, range(classes)))
    names = tuple(read_bytes(file).decode(errors="replace").split())
    if len(names) != classes:
        raise InvalidValue(f"The file `{file}` must hold {classes} class names. Got {len(names)} instead.")
    return names
