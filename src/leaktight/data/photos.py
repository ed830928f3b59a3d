"""Photos: small colour images cut from the two photographs that come with scikit-learn."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from pydantic import Field

from leaktight.core.random import stream
from leaktight.core.task import Batch
from leaktight.data.source import Data, Source

# In the photographs' own pixels: crops of SIDE, from a square of four rows and four columns of cells.
SIDE, CELL, WIDTH = 72, 80, 320
TRAIN_STEP, TEST_STEP = 8, 4
# The column of the test cell in each row: one in every row and column, so that both parts see all of the subject.
TEST_CELLS = (1, 0, 3, 2)


@dataclasses.dataclass(frozen=True)
class SubjectBox:
    """Where a photograph shows its subject."""

    file: str
    name: str
    left: int
    top: int


SUBJECTS = (SubjectBox("china.jpg", "temple", 48, 52), SubjectBox("flower.jpg", "flower", 148, 62))
Corner = tuple[int, int]


class Photos(Source):
    """Colour crops of a temple and a flower, cut from scikit-learn's two photographs: targets that a person recognises.

    Each crop shows 72x72 pixels of a photograph, brought to `size`: a roof, a row of windows, a handful of petals.
    Neighbours overlap, but no training crop shares a pixel with a test crop. 864 training and 72 test images, in a
    fixed shuffled order.

    Args:
        size: the side in pixels, from 8 to 72.
        classes: 2, 4 or 8. With 2 the label says which photograph, which is easy to learn; with more, each photograph
            is cut into upright strips and the label says which strip the crop's middle is in, which is hard.

    Example:
        >>> data = Photos(classes=4).load()
        >>> data.shape, len(data.train), len(data.test)
        ((3, 32, 32), 864, 72)
        >>> data.names
        ('temple 1', 'temple 2', 'flower 1', 'flower 2')
    """

    kind: Literal["photos"] = "photos"
    size: Annotated[int, Field(ge=8, le=SIDE)] = 32
    classes: Literal[2, 4, 8] = 2

    def read(self) -> Data:
        """Cut the crops from the photographs in the scikit-learn package."""
        from sklearn.datasets import load_sample_image

        photographs = [Image.fromarray(load_sample_image(subject.file)) for subject in SUBJECTS]
        strips = self.classes // len(SUBJECTS)
        names = tuple(s.name if strips == 1 else f"{s.name} {strip + 1}" for s in SUBJECTS for strip in range(strips))
        train, test = (
            self._batch(photographs, [corners(subject)[part] for subject in SUBJECTS], strips) for part in (0, 1)
        )
        return Data(train, test, self.classes, names)

    def _batch(self, photographs: list[Image.Image], places: list[list[Corner]], strips: int) -> Batch:
        crops: list[NDArray[Any]] = []
        labels: list[int] = []
        for position, (photograph, subject) in enumerate(zip(photographs, SUBJECTS, strict=True)):
            for x, y in places[position]:
                crop = photograph.crop((x, y, x + SIDE, y + SIDE))
                crops.append(np.asarray(crop.resize((self.size, self.size), Image.Resampling.LANCZOS)))
                labels.append(position * strips + (x + SIDE // 2 - subject.left) * strips // WIDTH)
        inputs = torch.from_numpy(np.stack(crops)).permute(0, 3, 1, 2).contiguous() / 255
        order = torch.randperm(len(crops), generator=stream(0, "photos"))
        return Batch(inputs, torch.tensor(labels)).take(order)


def corners(subject: SubjectBox) -> tuple[list[Corner], list[Corner]]:
    """Return the upper left corner of every training and every test crop, (x, y) in the photograph's pixels.

    Test crops lie inside the test cells; training crops lie anywhere in the square where they touch none of them.

    Args:
        subject: which photograph.
    """
    cells = [(subject.left + column * CELL, subject.top + row * CELL) for row, column in enumerate(TEST_CELLS)]
    train = [
        (x, y)
        for y in range(subject.top, subject.top + WIDTH - SIDE + 1, TRAIN_STEP)
        for x in range(subject.left, subject.left + WIDTH - SIDE + 1, TRAIN_STEP)
        if all(x + SIDE <= left or x >= left + CELL or y + SIDE <= top or y >= top + CELL for left, top in cells)
    ]
    test = [
        (x, y)
        for left, top in cells
        for y in range(top, top + CELL - SIDE + 1, TEST_STEP)
        for x in range(left, left + CELL - SIDE + 1, TEST_STEP)
    ]
    return train, test
