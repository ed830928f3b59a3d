"""Attributes: images with a table of yes-or-no facts, some to learn and some to keep private."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field, model_validator

from leaktight.core.errors import InvalidValue, did_you_mean, unknown
from leaktight.core.task import Batch
from leaktight.data.array_archive import open_archive
from leaktight.data.files import ImageSource, Location, Part, Share
from leaktight.data.folder import read_image
from leaktight.data.properties import Flags, as_flags
from leaktight.data.selection import holdout
from leaktight.data.source import Data
from leaktight.data.table import as_words, read_cells

_MEMBERS = "An archive for attributes has the members `images`, `attributes` and `attribute_names`."


def _as_tuple(names: Any) -> Any:
    return (names,) if isinstance(names, str) else names


Names = Annotated[tuple[str, ...], BeforeValidator(_as_tuple), Field(min_length=1)]
"""One name or several."""


class AttributeTable(NamedTuple):
    """Images or their files, and by name what is said about each."""

    inputs: NDArray[Any]
    columns: Mapping[str, NDArray[Any]]


class Attributes(ImageSource):
    """Images with attributes, such as faces: one or several are learned, another one is the private property.

    Read from an `.npz` archive with `images`, `attributes` (a row of 0 and 1 for each image) and `attribute_names`; or
    from a folder of images with a table in which each row names a file and its attributes. Only the attributes that are
    asked for must be 0 or 1.

    Args:
        path: the archive, or the folder.
        train_limit: keep at most so many training examples, each class in its share; None keeps all. Only these images
            are opened.
        test_limit: the same for test examples.
        size: the side in pixels that the middle square of each image is brought to; None leaves images as they are.
        resize: `bicubic` or `nearest`.
        table: for a folder, the `.csv` or `.csv.gz` file with the attributes.
        file: the table's column that names the file, relative to the folder.
        label: one attribute, to be learned as yes or no; or several, a class each: then examples with none or more than
            one of them are left out.
        private_property: the private property, which an example has if it has any of these attributes.
        private_property_absent: whether the property is to have none of them instead.
        test_share: what part is held out for testing, in (0, 1), each class in its share.

    Example:
        >>> import tempfile
        >>> facts = np.array([[0, 1], [1, 1], [0, 0], [1, 0]] * 5)
        >>> images = np.zeros((20, 8, 8), np.uint8)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     np.savez(f"{folder}/a.npz", images=images, attributes=facts, attribute_names=["Male", "Hat"])
        ...     data = Attributes(path=f"{folder}/a.npz", label="Male", private_property="Hat").load()
        >>> data.names, data.property_name, len(data.train), len(data.test)
        (('not Male', 'Male'), 'Hat', 14, 6)

    References:
        Liu et al., Deep Learning Face Attributes in the Wild, 2015; Mo et al., Layer-wise Characterization of Latent
        Information Leakage in Federated Learning, 2021, section 5.
    """

    kind: Literal["attributes"] = "attributes"
    table: Location = ""
    file: str = "file"
    label: Names
    test_share: Share = 0.3

    @property
    def places(self) -> tuple[Path, ...]:
        """The archive, or the folder and its table."""
        return (self.place, Path(self.table).expanduser()) if self.table else (self.place,)

    # It comes after the method above, as from here on the name is no longer Python's decorator.
    private_property: Names
    # Left out where it is off, so that settings of before it was there keep their keys.
    private_property_absent: bool = Field(False, exclude_if=lambda absent: not absent)

    @model_validator(mode="after")
    def _apart(self) -> Attributes:
        both = [name for name in self.private_property if name in self.label]
        if both:
            raise InvalidValue(
                f"The `private_property` of attributes must be another one than the label. Got `{both[0]}` for both; "
                "choose another one."
            )
        return self

    @classmethod
    def fits(cls, path: Path) -> bool:
        """Never: no path tells which attributes are meant."""
        return False

    def read(self) -> Data:
        """Read the attributes, then the images that are left."""
        table = self._folder() if self.table else self._archive()
        kept, labels, names = self._classes(table)
        properties = np.max([self._flags(table, name) for name in self.private_property], axis=0)
        properties = 1 - properties if self.private_property_absent else properties
        whole = Part(table.inputs[kept], labels, properties[kept])
        train, test = self.limit(*(whole.take(index) for index in holdout(labels, self.test_share)))
        return Data(
            self._batch(train, "training"),
            self._batch(test, "test"),
            len(names),
            names,
            property_name=f"{'not ' if self.private_property_absent else ''}{' or '.join(self.private_property)}",
        )

    def _archive(self) -> AttributeTable:
        if self.place.is_dir():
            raise InvalidValue(
                f"The `table` of attributes must be set for the folder `{self.place}`. Got none; name the file."
            )
        with open_archive(self.place) as archive:
            images, table, names = (
                archive.array(name, _MEMBERS) for name in ("images", "attributes", "attribute_names")
            )
        if images.ndim < 3 or table.shape != (len(images), names.size):
            raise InvalidValue(
                f"The file `{self.place}` must have a row of attributes for each image, and a name for each "
                f"attribute. Got images of shape {images.shape}, attributes of shape {table.shape} and {names.size} "
                "names."
            )
        return AttributeTable(images, {str(name): table[:, at] for at, name in enumerate(names.reshape(-1))})

    def _folder(self) -> AttributeTable:
        if not self.place.is_dir():
            raise InvalidValue(
                f"The `path` of attributes must be a folder of images if there is a `table`. Got `{self.place}` "
                "instead."
            )
        header, rows = read_cells(self.places[-1])
        if self.file not in header:
            raise InvalidValue(
                f"The file `{self.places[-1]}` has no column `{self.file}`. {did_you_mean(self.file, header)}"
            )
        cells: NDArray[Any] = np.array(rows, dtype=object)
        columns = {name: cells[:, at] for at, name in enumerate(header)}
        files: NDArray[Any] = np.array([str(self.place / name) for name in columns.pop(self.file)], dtype=object)
        return AttributeTable(files, columns)

    def _classes(self, table: AttributeTable) -> tuple[Flags, Flags, tuple[str, ...]]:
        """Return which examples have exactly one class, their classes, and what those are called."""
        facts = np.stack([self._flags(table, name) for name in self.label], axis=1)
        names = self.label
        if len(names) == 1:
            facts, names = np.concatenate([1 - facts, facts], axis=1), (f"not {names[0]}", names[0])
        kept = np.flatnonzero(facts.sum(axis=1) == 1)
        labels = facts[kept].argmax(axis=1)
        absent = [name for number, name in enumerate(names) if number not in labels]
        if absent:
            raise InvalidValue(
                f"The data `{self.places[-1]}` must have examples of each class alone. Got none of `{absent[0]}`; "
                "choose another `label`."
            )
        return kept, labels, names

    def _flags(self, table: AttributeTable, name: str) -> Flags:
        if name not in table.columns:
            raise unknown("attribute", name, table.columns)
        what = f"The attribute `{name}` of `{self.places[-1]}`"
        values = table.columns[name]
        return as_flags(as_words(values, what) if values.dtype == object else values, what)

    def _batch(self, part: Part, name: str) -> Batch:
        if not self.table:
            return self.batch(part, name)
        images = [read_image(Path(file), self.size, self.resize) for file in part.inputs]
        shapes = sorted({image.shape for image in images})
        if len(shapes) > 1:
            raise InvalidValue(
                f"The images in `{self.place}` must be of one shape. Got {shapes[0]} and {shapes[1]}; set a `size` to "
                "bring them to."
            )
        return self.batch(Part(np.stack(images), part.labels, part.properties), name, "channels_first")
