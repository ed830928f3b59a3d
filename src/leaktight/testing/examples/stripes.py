"""Stripes: images that anybody can make."""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import Field

from leaktight.core.random import stream
from leaktight.core.task import Batch
from leaktight.data.source import Data, Source


class Stripes(Source):
    """Striped images, upright or level, with noise, for whoever wants to see how a data source is written.

    Args:
        examples: how many there are for training; a quarter as many are for testing. At least 8.
        seed: what they are drawn from.
    """

    kind: Literal["example_stripes"] = "example_stripes"
    examples: int = Field(64, ge=8)
    seed: int = Field(0, ge=0)

    def read(self) -> Data:
        """Return both parts; `load` checks them."""
        return Data(
            train=self._draw("train", self.examples),
            test=self._draw("test", self.examples // 4),
            classes=2,
            names=("upright", "level"),
        )

    def _draw(self, part: str, count: int) -> Batch:
        noise = torch.rand(count, 1, 8, 8, generator=stream(self.seed, part))
        labels = torch.arange(count) % 2
        stripes = (torch.arange(8) % 2).float().expand(8, 8)
        images = torch.where(labels[:, None, None, None] == 0, stripes, stripes.T)
        return Batch(0.8 * images + 0.2 * noise, labels)
