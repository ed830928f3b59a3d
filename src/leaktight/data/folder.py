"""Image folders: one sub-folder per class."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError
from pydantic import Field

from leaktight.core.errors import InvalidValue
from leaktight.core.input_file import GIBIBYTE, open_input
from leaktight.core.task import Batch
from leaktight.data.files import FileSource, Part, Share, listing, unreadable
from leaktight.data.labels import number
from leaktight.data.pixels import Resize
from leaktight.data.selection import holdout
from leaktight.data.source import Data

LARGEST_IMAGE = GIBIBYTE
"""How many bytes a file with one image may have."""
MOST_PIXELS = 1 << 26
"""How many pixels an image may have, eight thousand each way: a small file can unpack to any number of them."""
# Pillow goes by the content, not by the name, and would hand PostScript to another program.
_FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP", "TIFF", "PPM")
_SUFFIXES = {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm", ".pbm"}
_TESTS = ("test", "val", "valid", "validation")
_FILTERS = {"nearest": Image.Resampling.NEAREST, "bicubic": Image.Resampling.BICUBIC}


class ImageFolder(FileSource):
    """A folder of images with a sub-folder for each class, or `train` and `test` folders of such sub-folders.

    The middle square of each image is brought to `size`. Without a `test` (or `val`) folder a share of each class is
    held out.

    Args:
        path: the folder.
        train_limit: keep at most so many training examples, each class in its share; None keeps all. Only these are
            opened.
        test_limit: the same for test examples.
        size: the side in pixels.
        resize: `bicubic` or `nearest`.
        channels: 3 for colour, 1 for grey.
        test_share: what part is held out for testing when there is no `test` folder, in (0, 1).

    Example:
        >>> print(ImageFolder(path="pets", size=64))
        image_folder(path='pets', size=64)
    """

    kind: Literal["image_folder"] = "image_folder"
    size: Annotated[int, Field(ge=1, le=1024)] = 32
    resize: Resize = "bicubic"
    channels: Literal[1, 3] = 3
    test_share: Share = 0.2

    @classmethod
    def fits(cls, path: Path) -> bool:
        """Whether this is a folder with images one or two folders further down."""
        if not path.is_dir():
            return False
        inner = [entry for entry in listing(path) if entry.is_dir()]
        return any(_is_image(entry) for folder in inner for entry in _below(folder))

    def read(self) -> Data:
        """Read the images that the limits leave."""
        training = self.place / "train"
        if training.is_dir():
            testing = next((self.place / name for name in _TESTS if (self.place / name).is_dir()), None)
        else:
            training, testing = self.place, None
        train = _files(training)
        if testing is None:
            train_index, test_index = holdout(train.labels, self.test_share)
            train, test = train.take(train_index), train.take(test_index)
        else:
            test = _files(testing)
        train_labels, test_labels, names = number(train.labels, test.labels, f"The folder `{self.place}`")
        train, test = self.limit(Part(train.inputs, train_labels), Part(test.inputs, test_labels))
        return Data(self._batch(train), self._batch(test), len(names), names)

    def _batch(self, part: Part) -> Batch:
        images = [read_image(Path(file), self.size, self.resize, self.channels) for file in part.inputs]
        return part.batch(torch.from_numpy(np.stack(images)))


def read_image(file: Path, size: int | None, resize: Resize = "bicubic", channels: int = 3) -> NDArray[np.float32]:
    """Return an image as (channels, height, width) in [0, 1], upright and on a white ground.

    Args:
        file: what to open.
        size: the side in pixels that its middle square is brought to; None leaves it as it is.
        resize: `bicubic` or `nearest`.
        channels: 3 for colour, 1 for grey.
    """
    try:
        with warnings.catch_warnings(), open_input(file, LARGEST_IMAGE) as content:
            # Pillow warns about large or oddly tagged files that it reads all the same.
            warnings.simplefilter("ignore")
            with Image.open(content, formats=_FORMATS) as opened:
                if opened.width * opened.height > MOST_PIXELS:
                    raise InvalidValue(
                        f"The image `{file}` must have at most {MOST_PIXELS} pixels. Got "
                        f"{opened.width}x{opened.height}; shrink it, or remove it."
                    )
                ImageOps.exif_transpose(opened, in_place=True)
                image = _convert(opened, "L" if channels == 1 else "RGB")
    except FileNotFoundError as error:
        raise unreadable(file, error) from None
    except (UnidentifiedImageError, Image.DecompressionBombError, OSError, SyntaxError, ValueError) as error:
        raise InvalidValue(
            f"The file `{file}` must be an image that Pillow reads. It is not ({error}); remove or replace it."
        ) from None
    if size is not None:
        side = min(image.size)
        left, top = (image.width - side) // 2, (image.height - side) // 2
        image = image.crop((left, top, left + side, top + side)).resize((size, size), _FILTERS[resize])
    pixels = np.asarray(image, dtype=np.float32).reshape(image.height, image.width, channels) / 255
    return np.ascontiguousarray(pixels.transpose(2, 0, 1))


def _convert(image: Image.Image, mode: str) -> Image.Image:
    if image.mode.startswith("I"):
        # Sixteen bits per pixel: Pillow would clip everything above 255.
        image = Image.fromarray((np.asarray(image).clip(0, 65535) // 257).astype(np.uint8))
    if image.has_transparency_data:
        ground = Image.new("RGBA", image.size, "white")
        ground.alpha_composite(image if image.mode == "RGBA" else image.convert("RGBA"))
        image = ground
    return image.convert(mode)


def _below(folder: Path) -> list[Path]:
    entries = listing(folder)
    return [*entries, *(inner for entry in entries if entry.is_dir() for inner in listing(entry))]


def _is_image(path: Path) -> bool:
    return path.suffix.lower() in _SUFFIXES and path.is_file()


def _files(folder: Path) -> Part:
    """Return every image's path and its class folder's name."""
    files: list[str] = []
    names: list[str] = []
    for entry in listing(folder):
        if entry.is_dir():
            images = [str(file) for file in listing(entry) if _is_image(file)]
            if not images:
                raise InvalidValue(
                    f"The class folder `{entry}` must hold images. Got none instead; fill it or remove it."
                )
            files += images
            names += [entry.name] * len(images)
    if not files:
        raise InvalidValue(
            f"The folder `{folder}` must have a sub-folder of images for each class. Got no sub-folder instead."
        )
    labels: NDArray[Any] = np.array(names)
    return Part(np.array(files), labels)
