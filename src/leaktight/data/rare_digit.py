"""Rare digit: one handwritten digit against the nine others, a small real data set in which positives are rare."""

from __future__ import annotations

from typing import Annotated, Literal

import torch
from pydantic import Field

from leaktight.core.task import Batch
from leaktight.data.columns import Columns
from leaktight.data.digits import Digits
from leaktight.data.source import Data, Source

_SIDE, _LEVELS = 8, 17


class RareDigit(Source):
    """Is it this digit? The 1,797 digits that come with scikit-learn, as a yes-or-no question whose answer is yes for a tenth: real, no download.

    It stands in for click and credit data at the smallest scale: rare positives, many columns, and columns that can be dealt out to two
    parties. The pictures and their digits are real; the question is ours, and an easy one: a linear classifier reaches a test AUC
    of about 0.97 for an eight, and about 1 for most others. 1,438 training and 359 test examples, as in `digits`.

    Args:
        digit: which one is positive, 0 to 9; 8 is the hardest.
        form: `numbers`, rows of 64 columns `r0c0` to `r7c7` in [0, 1]; `levels`, the same with each pixel as one of 17 ids, so that
            every column is a category; `image`, 1x8x8.

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
        train, test = self._asked(digits.train), self._asked(digits.test)
        if self.form == "image":
            return Data(train, test, 2, names)
        ids = _LEVELS if self.form == "levels" else 0
        pixels = tuple(f"r{row}c{column}" for row in range(_SIDE) for column in range(_SIDE))
        return Data(train, test, 2, names, Columns(pixels, (ids,) * len(pixels)))

    def _asked(self, batch: Batch) -> Batch:
        labels = (batch.labels == self.digit).long()
        if self.form == "image":
            return Batch(batch.inputs, labels)
        rows = batch.inputs.flatten(1)
        return Batch(torch.round(rows * (_LEVELS - 1)) if self.form == "levels" else rows, labels)
