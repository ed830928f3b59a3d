"""Parity: is the handwritten digit odd? A small real task with a private property that has nothing to do with it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from leaktight.core.task import Batch
from leaktight.data.digits import Digits
from leaktight.data.pixels import Resize
from leaktight.data.source import Data, Source

_FROM = 6


class Parity(Source):
    """Odd or even? The 1,797 digits that come with scikit-learn, with the private property that the digit is 6 or more: real, no download.

    Of 6, 7, 8 and 9 two are odd and two are even, so the task does not tell the property: over all examples the correlation of
    label and property is -0.002, and 40 % of the odd digits have the property as 40 % of the even ones do. An attack that finds it has
    therefore found something that the task did not ask for. The pictures and their digits are real; both questions are ours. 1,438 training
    and 359 test examples, as in `digits`; 50 % are odd.

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
    size: Annotated[int, Field(ge=8, le=64)] = 8
    resize: Resize = "bicubic"

    def read(self) -> Data:
        """Read the digits and ask both questions."""
        digits = Digits(size=self.size, resize=self.resize).read()
        train, test = _relabel(digits.train), _relabel(digits.test)
        return Data(train, test, 2, ("even", "odd"), property_name=f"{_FROM} or more")


def _relabel(batch: Batch) -> Batch:
    return Batch(batch.inputs, batch.labels % 2, (batch.labels >= _FROM).long())
