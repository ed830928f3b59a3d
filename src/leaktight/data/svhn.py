"""SVHN: the cropped digits of street view house numbers, in their own MATLAB files."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np

from leaktight.core.errors import InvalidValue
from leaktight.data.files import ImageSource, Part
from leaktight.data.labels import in_range
from leaktight.data.matlab_file import read_matlab
from leaktight.data.source import Data

TRAINING, TESTING = "train_32x32.mat", "test_32x32.mat"
_DIGITS = 10


class Svhn(ImageSource):
    """A folder with the cropped digits of SVHN: `train_32x32.mat` and `test_32x32.mat`, colour images of 32x32 pixels.

    Labels are the digits; the files call the digit 0 class 10.

    Args:
        path: the folder.
        train_limit: keep at most so many training examples, each class in its share; None keeps all.
        test_limit: the same for test examples.
        size: the side in pixels that images are brought to; None leaves them at 32.
        resize: `bicubic` or `nearest`.

    Example:
        >>> print(Svhn(path="svhn", test_limit=2000))
        svhn(path='svhn', test_limit=2000)

    References:
        Netzer et al., "Reading Digits in Natural Images with Unsupervised Feature Learning", 2011.
    """

    kind: Literal["svhn"] = "svhn"

    @classmethod
    def fits(cls, path: Path) -> bool:
        """Whether this is a folder with both files."""
        return path.is_dir() and all((path / name).is_file() for name in (TRAINING, TESTING))

    @property
    def places(self) -> tuple[Path, ...]:
        """Both files."""
        return self.place / TRAINING, self.place / TESTING

    def read(self) -> Data:
        """Read both files."""
        train, test = map(_read, self.places)
        return self.assemble(train, test, _DIGITS, tuple(map(str, range(_DIGITS))), "channels_first")


def _read(path: Path) -> Part:
    arrays = read_matlab(path, ("X", "y"))
    images, labels = arrays["X"], arrays["y"].reshape(-1)
    if images.ndim != 4 or images.shape[2] != 3 or images.shape[3] != len(labels) or images.dtype != np.uint8:
        raise InvalidValue(
            f"The file `{path}` must have colour images X, (height, width, 3, images), and a label y for each. Got "
            f"shapes {images.shape} and {arrays['y'].shape} of {images.dtype} instead."
        )
    digits = np.where(labels == _DIGITS, 0, labels)
    return Part(images.transpose(3, 2, 0, 1), in_range(digits, _DIGITS, f"The file `{path}`"))
