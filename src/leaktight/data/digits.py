"""Digits: the small handwritten digits that come with scikit-learn."""

from __future__ import annotations

from typing import Annotated, Literal

import torch
from pydantic import Field

from leaktight.core.task import Batch
from leaktight.data.pixels import Resize, fit
from leaktight.data.selection import holdout
from leaktight.data.source import Data, Source


class Digits(Source):
    """The 1,797 grey 8x8 digits that come with scikit-learn: real handwriting, no download.

    A fifth of each class is held out for testing: 1,438 training and 359 test images, always the same.

    Args:
        size: the side in pixels, from 8 to 64; 32 suits networks that were drawn for 32x32 images.
        resize: how a larger side is reached, `bicubic` or `nearest`.

    Example:
        >>> data = Digits(size=32).load()
        >>> data.shape, data.classes, len(data.train), len(data.test)
        ((1, 32, 32), 10, 1438, 359)

    References:
        E. Alpaydin, C. Kaynak, "Optical Recognition of Handwritten Digits", UCI Machine Learning Repository, 1998.
    """

    kind: Literal["digits"] = "digits"
    size: Annotated[int, Field(ge=8, le=64)] = 8
    resize: Resize = "bicubic"

    def read(self) -> Data:
        """Read the digits from the scikit-learn package."""
        from sklearn.datasets import load_digits

        found = load_digits()
        images = torch.from_numpy(found.images).float().unsqueeze(1) / 16
        every = Batch(fit(images, self.size, self.resize), torch.from_numpy(found.target).long())
        train, test = holdout(found.target, share=0.2)
        return Data(
            train=every.take(torch.from_numpy(train)),
            test=every.take(torch.from_numpy(test)),
            classes=10,
            names=tuple(str(name) for name in found.target_names),
        )
