"""Held-out training examples in the place of test data, for choices that must not be made on test data."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable
from typing import Literal

import torch
from pydantic import SerializeAsAny

from leaktight.data.files import Share
from leaktight.data.selection import holdout
from leaktight.data.source import Data, Source


class HeldOut(Source):
    """Another source whose test part is a share of its training examples, each class in its share.

    The source's own test part is not used.

    Settings such as the length of a training run are chosen by what is measured here, so that the true test data stay
    unseen.

    Args:
        data: the source.
        share: what part of its training examples is held out, in (0, 1).

    Example:
        >>> from leaktight.data import RareDigit
        >>> held = HeldOut(data=RareDigit(), share=0.25).load()
        >>> len(RareDigit().load().train), len(held.train), len(held.test)
        (1438, 1078, 360)
    """

    kind: Literal["held_out"] = "held_out"
    data: SerializeAsAny[Source]
    share: Share = 0.2

    def stamp(self) -> Hashable:
        """Return the stamp of the source."""
        return self.data.stamp()

    def read(self) -> Data:
        """Read the source and divide its training part."""
        data = self.data.load()
        train, test = (torch.from_numpy(index) for index in holdout(data.train.labels.numpy(), self.share))
        return dataclasses.replace(data, train=data.train.take(train), test=data.train.take(test))
