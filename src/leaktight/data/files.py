"""Files: what every reader of a file or folder has in common."""

from __future__ import annotations

import abc
import dataclasses
import os
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import torch
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field, PlainSerializer, SerializationInfo
from torch import Tensor

from leaktight.core.errors import InvalidValue
from leaktight.core.input_file import GIBIBYTE, open_unpacked, read_input
from leaktight.core.task import Batch
from leaktight.data.pixels import Layout, Resize, as_inputs, fit
from leaktight.data.selection import Index, subset
from leaktight.data.source import Data, Source


def _as_text(path: Any) -> Any:
    return os.fspath(path) if isinstance(path, os.PathLike) else path


def _serialise(path: str, about: SerializationInfo) -> str:
    # The whole path goes: folders reveal people and projects, and the last part may be a folder.
    return "withheld" if path and about.context == PASSED_ON else path


PASSED_ON = "passed on"
"""The serialisation context of settings that leave their owner's hands."""
Location = Annotated[str, BeforeValidator(_as_text), PlainSerializer(_serialise)]
"""The type of every setting that is a place on the disk: it is withheld from what is passed on."""
Limit = Annotated[int, Field(ge=1)] | None
Share = Annotated[float, Field(gt=0, lt=1)]
LARGEST_DATA = 16 * GIBIBYTE
"""How many bytes a file of examples may have, packed and unpacked."""
# As deep as train/class/image.
_DEPTHS = ("*", "*/*", "*/*/*")


@dataclasses.dataclass(frozen=True)
class Part:
    """The training or test examples as they lie in a file.

    Args:
        inputs: what the model is to see, or where it lies.
        labels: what it is to learn.
        properties: for each example whether it has the private property; None if there is none.
    """

    inputs: NDArray[Any]
    labels: NDArray[Any]
    properties: NDArray[Any] | None = None

    def take(self, index: Index) -> Part:
        """Return the examples at these positions."""
        return Part(self.inputs[index], self.labels[index], None if self.properties is None else self.properties[index])

    def batch(self, inputs: Tensor) -> Batch:
        """Return these inputs with the labels and properties of this part."""
        properties = None if self.properties is None else torch.from_numpy(self.properties)
        return Batch(inputs, torch.from_numpy(self.labels), properties)


class FileSource(Source):
    """A source that reads a file or a folder.

    Args:
        path: the file or folder; `~` is the home folder.
        train_limit: keep at most so many training examples, each class in its share; None keeps all.
        test_limit: the same for test examples.
    """

    path: Annotated[Location, Field(min_length=1)]
    train_limit: Limit = None
    test_limit: Limit = None

    @classmethod
    @abc.abstractmethod
    def fits(cls, path: Path) -> bool:
        """Whether what lies at a path looks like something this class reads."""

    @property
    def place(self) -> Path:
        """The path with `~` expanded."""
        return Path(self.path).expanduser()

    @property
    def places(self) -> tuple[Path, ...]:
        """Every file or folder that is read."""
        return (self.place,)

    def stamp(self) -> Hashable:
        """Return size and time of change of every file that is read, or up to three levels below a folder that is."""
        entries = (
            file for place in self.places for file in (place, *(f for depth in _DEPTHS for f in place.glob(depth)))
        )
        files = [file for file in entries if file.is_file()]
        return tuple((str(file), state.st_size, state.st_mtime_ns) for file in sorted(files) for state in [file.stat()])

    def limit(self, train: Part, test: Part) -> tuple[Part, Part]:
        """Return both parts with at most as many examples as the limits allow."""
        return train.take(subset(train.labels, self.train_limit)), test.take(subset(test.labels, self.test_limit))


class ImageSource(FileSource):
    """A file source of images.

    Args:
        path: the file or folder.
        train_limit: keep at most so many training examples.
        test_limit: keep at most so many test examples.
        size: the side in pixels that the middle square of each image is brought to; None leaves images as they are.
        resize: `bicubic` or `nearest`.
    """

    size: Annotated[int, Field(ge=1, le=1024)] | None = None
    resize: Resize = "bicubic"

    def assemble(self, train: Part, test: Part, classes: int, names: tuple[str, ...], layout: Layout = "auto") -> Data:
        """Return two parts of whole-number pixels, already numbered from 0, as a data set within the limits."""
        train, test = self.limit(train, test)
        return Data(self.batch(train, "training", layout), self.batch(test, "test", layout), classes, names)

    def batch(self, part: Part, name: str, layout: Layout = "auto", scale: float | None = None) -> Batch:
        """Return a part as inputs and labels, images brought to size."""
        inputs = as_inputs(part.inputs, f"The {name} inputs of {self}", layout, scale)
        if self.size is not None:
            if inputs.dim() != 4:
                raise InvalidValue(f"The `size` of {self.kind} must be left out for a table. Got {self.size} instead.")
            inputs = fit(inputs, self.size, self.resize)
        return part.batch(inputs)


@contextmanager
def open_data(path: Path, largest: int = LARGEST_DATA) -> Iterator[BinaryIO]:
    """Open a file of data within bounds, unpacked if its name ends in `.gz`.

    Whatever is wrong with it becomes one sentence.
    """
    try:
        with open_unpacked(path, largest) as file:
            yield file
    except OSError as error:
        raise unreadable(path, error) from None


def read_bytes(path: Path, largest: int = LARGEST_DATA) -> bytes:
    """Return what a file holds, unpacked if its name ends in `.gz`.

    Args:
        path: the file.
        largest: how many bytes it may have, packed and unpacked.
    """
    try:
        if path.suffix.lower() != ".gz":
            return read_input(path, largest)
        with open_unpacked(path, largest) as file:
            return file.read()
    except OSError as error:
        raise unreadable(path, error) from None


def unreadable(path: Path, error: OSError) -> InvalidValue:
    """Return the error for a file or folder that cannot be opened."""
    if isinstance(error, FileNotFoundError):
        return InvalidValue(f"There is no file or folder `{path}`. Check the path.")
    return InvalidValue(f"The file or folder `{path}` cannot be read: {error.strerror or error}.")


def listing(folder: Path) -> list[Path]:
    """Return what lies in a folder, by name, without hidden entries."""
    try:
        return sorted(entry for entry in folder.iterdir() if not entry.name.startswith("."))
    except OSError as error:
        raise unreadable(folder, error) from None
