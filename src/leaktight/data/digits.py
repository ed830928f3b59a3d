"""Digits: the small handwritten digits of scikit-learn, as ten classes and as two yes-or-no questions."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field

from leaktight.core.task import Batch
from leaktight.data.columns import Columns
from leaktight.data.pixels import Resize, fit
from leaktight.data.selection import holdout
from leaktight.data.source import Data, Source

_SIDE, _LEVELS = 8, 17
"""The side of a picture, and how many values a pixel can have."""
_PROPERTY_FROM = 6
"""The first digit with the private property of `Parity`."""


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

        bunch = load_digits()
        images = torch.from_numpy(bunch.images).float().unsqueeze(1) / 16
        every = Batch(fit(images, self.size, self.resize), torch.from_numpy(bunch.target).long())
        train, test = holdout(bunch.target, share=0.2)
        return Data(
            train=every.take(torch.from_numpy(train)),
            test=every.take(torch.from_numpy(test)),
            classes=10,
            names=tuple(str(name) for name in bunch.target_names),
        )


class Parity(Source):
    """Odd or even? The 1,797 digits of scikit-learn; the private property is 6 or more. Real, no download.

    Of 6, 7, 8 and 9 two are odd and two are even, so the task does not tell the property: over all examples the
    correlation of label and property is -0.002, and 40 % of the odd digits have the property as 40 % of the even ones
    do. An attack that finds it has therefore found something that the task did not ask for. The pictures and their
    digits are real; both questions are ours. 1,438 training and 359 test examples, as in `digits`; 50 % are odd.

    Args:
        size: the side in pixels, from 8 to 64; 32 suits networks that were drawn for 32x32 images.
        resize: how a larger side is reached, `bicubic` or `nearest`.

    Example:
        >>> data = Parity().load()
        >>> data.shape, data.names, data.property_name
        ((1, 8, 8), ('even', 'odd'), '6 or more')
        >>> data.train.labels.bincount().tolist(), data.train.properties.bincount().tolist()
        ([713, 725], [867, 571])

    References:
        E. Alpaydin, C. Kaynak, "Optical Recognition of Handwritten Digits", UCI Machine Learning Repository, 1998.
    """

    kind: Literal["parity"] = "parity"
    property_title: ClassVar[str] = f"{_PROPERTY_FROM} or more"
    size: Annotated[int, Field(ge=8, le=64)] = 8
    resize: Resize = "bicubic"

    def read(self) -> Data:
        """Read the digits and ask both questions."""
        digits = Digits(size=self.size, resize=self.resize).read()
        train, test = self._relabel(digits.train), self._relabel(digits.test)
        return Data(train, test, 2, ("even", "odd"), property_name=self.property_title)

    @staticmethod
    def _relabel(batch: Batch) -> Batch:
        return Batch(batch.inputs, batch.labels % 2, (batch.labels >= _PROPERTY_FROM).long())


class RareDigit(Source):
    """Is it this digit? A question with a tenth of yes, on the 1,797 digits of scikit-learn. Real, no download.

    It stands in for click and credit data at the smallest scale: rare positives, many columns, and columns that can be
    dealt out to two parties. The pictures and their digits are real; the question is ours, and an easy one: a linear
    classifier reaches a test AUC of about 0.97 for an eight, and about 1 for most others. 1,438 training and 359 test
    examples, as in `digits`.

    Args:
        digit: which one is positive, 0 to 9; 8 is the hardest.
        form: `numbers`, rows of 64 columns `r0c0` to `r7c7` in [0, 1]; `levels`, the same with each pixel as one of 17
            ids, so that every column is a category; `image`, 1x8x8.

    Example:
        >>> data = RareDigit().load()
        >>> data.shape, data.names, data.train.labels.bincount().tolist()
        ((64,), ('other', '8'), [1299, 139])
        >>> RareDigit(form="levels").load().columns.ids[:3]
        (17, 17, 17)

    References:
        E. Alpaydin, C. Kaynak, "Optical Recognition of Handwritten Digits", UCI Machine Learning Repository, 1998.
    """

    kind: Literal["rare_digit"] = "rare_digit"
    digit: Annotated[int, Field(ge=0, le=9)] = 8
    form: Literal["numbers", "levels", "image"] = "numbers"

    def read(self) -> Data:
        """Read the digits and ask the question."""
        digits = Digits().read()
        names = ("other", str(self.digit))
        train, test = self._relabel(digits.train), self._relabel(digits.test)
        if self.form == "image":
            return Data(train, test, 2, names)
        ids = _LEVELS if self.form == "levels" else 0
        pixels = tuple(f"r{row}c{column}" for row in range(_SIDE) for column in range(_SIDE))
        return Data(train, test, 2, names, Columns(pixels, (ids,) * len(pixels)))

    def _relabel(self, batch: Batch) -> Batch:
        labels = (batch.labels == self.digit).long()
        if self.form == "image":
            return Batch(batch.inputs, labels)
        rows = batch.inputs.flatten(1)
        return Batch(torch.round(rows * (_LEVELS - 1)) if self.form == "levels" else rows, labels)
