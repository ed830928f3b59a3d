"""NPZ: NumPy archives of images or table rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from leaktight.core.errors import InvalidValue
from leaktight.data.array_archive import ArrayArchive, open_archive
from leaktight.data.files import ImageSource, Part, Share
from leaktight.data.labels import as_ids, in_range, match_names, number
from leaktight.data.pixels import Layout
from leaktight.data.properties import as_flags
from leaktight.data.selection import holdout
from leaktight.data.source import Data

_IMAGES = ("images", "inputs", "data", "x", "X")
_LABELS = ("labels", "target", "targets", "label", "y", "Y")
_NAMES = ("class_names", "label_names", "target_names", "fine_label_names")
_MEMBERS = "Name members by `x_train`, `y_train`, `x_test`, `y_test`, or one pair by `x` and `y`."
_PROPERTY = (
    "The `private_property` of npz names one member beside a pair, or two beside four members, with `_train` and "
    "`_test` added."
)


class Npz(ImageSource):
    """A NumPy archive with four members for training and test data, or with one pair that is split.

    Pickled members are refused.

    Images may be whole numbers from 0 to 255 or fractions in [0, 1], grey or colour, channels first or last; two
    dimensions are a table. Label ids of any kind are numbered from 0 in their order and stay known by name.

    Args:
        path: the file.
        train_limit: keep at most so many training examples, each class in its share; None keeps all.
        test_limit: the same for test examples.
        size: the side in pixels that images are brought to; None leaves them as they are.
        resize: `bicubic` or `nearest`.
        x_train: the member with the training inputs. Likewise `y_train`, `x_test` and `y_test`.
        y_train: see `x_train`.
        x_test: see `x_train`.
        y_test: see `x_train`.
        x: the inputs of a single pair that is split; empty takes the four members, or if they are absent a pair with
            usual names.
        y: the labels of that pair.
        test_share: what part of a single pair is held out for testing, in (0, 1).
        names: the member with class names; empty looks for it by usual names.
        classes: how many classes there are; labels must then lie in 0 to classes - 1 and are not renumbered.
        layout: `channels_first`, `channels_last`, or `auto`.
        scale: what pixels are divided by; None means 255 for whole numbers and 1 for fractions.
        private_property: the member with a private property, 1 for each example that has it and 0 for one that has not;
            beside four members two with `_train` and `_test` added, such as `sex_train` and `sex_test` for `sex`. Empty
            means none.

    Example:
        >>> import tempfile
        >>> import numpy as np
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     np.savez(f"{folder}/a.npz", images=np.zeros((10, 8, 8), np.uint8), target=np.arange(10) % 2 + 5)
        ...     data = Npz(path=f"{folder}/a.npz").load()
        >>> data.shape, data.names, len(data.train), len(data.test)
        ((1, 8, 8), ('5', '6'), 8, 2)
    """

    kind: Literal["npz"] = "npz"
    x_train: str = "x_train"
    y_train: str = "y_train"
    x_test: str = "x_test"
    y_test: str = "y_test"
    x: str = ""
    y: str = ""
    test_share: Share = 0.2
    names: str = ""
    classes: Annotated[int, Field(ge=2)] | None = None
    layout: Layout = "auto"
    scale: Annotated[float, Field(gt=0)] | None = None
    private_property: str = ""

    @model_validator(mode="after")
    def _check_pair(self) -> Npz:
        if bool(self.x) != bool(self.y):
            raise InvalidValue("npz must have both `x` and `y` or neither. Got one of them; name the other member too.")
        return self

    @classmethod
    def fits(cls, path: Path) -> bool:
        """Whether this is a file whose name ends in `.npz`."""
        return path.is_file() and path.suffix == ".npz"

    def read(self) -> Data:
        """Read the members that are needed."""
        with open_archive(self.place) as archive:
            pair = self._pair(archive.names)
            if pair:
                whole = self._part(archive, *pair, self.private_property)
                train_index, test_index = holdout(whole.labels, self.test_share)
                train, test = whole.take(train_index), whole.take(test_index)
            else:
                train = self._part(
                    archive, self.x_train, self.y_train, self.private_property and f"{self.private_property}_train"
                )
                test = self._part(
                    archive, self.x_test, self.y_test, self.private_property and f"{self.private_property}_test"
                )
            train, test, ids = self._number(train, test)
            names = self._names(archive, ids)
        train, test = self.limit(train, test)
        return Data(
            self.batch(train, "training", self.layout, self.scale),
            self.batch(test, "test", self.layout, self.scale),
            len(names),
            names,
            property_name=self.private_property,
        )

    def _pair(self, members: tuple[str, ...]) -> tuple[str, str] | None:
        if self.x:
            return self.x, self.y
        four = {self.x_train, self.y_train, self.x_test, self.y_test}
        x, y = (next((name for name in usual if name in members), None) for usual in (_IMAGES, _LABELS))
        return (x, y) if x and y and not four & set(members) else None

    def _part(self, archive: ArrayArchive, x: str, y: str, private: str) -> Part:
        inputs, labels = (archive.array(name, _MEMBERS) for name in (x, y))
        labels = as_ids(labels, f"The labels `{y}` of `{self.place}`")
        if inputs.ndim == 0 or len(inputs) != len(labels):
            raise InvalidValue(
                f"The members `{x}` and `{y}` of `{self.place}` must have a label for each example. Got shapes "
                f"{inputs.shape} and {labels.shape} instead."
            )
        if not private:
            return Part(inputs, labels)
        flags = as_flags(archive.array(private, _PROPERTY), f"The property `{private}` of `{self.place}`")
        if len(flags) != len(labels):
            raise InvalidValue(
                f"The property `{private}` of `{self.place}` must be given for each of {len(labels)} examples. Got "
                f"{len(flags)} instead."
            )
        return Part(inputs, labels, flags)

    def _number(self, train: Part, test: Part) -> tuple[Part, Part, tuple[str, ...]]:
        what = f"The file `{self.place}`"
        if self.classes is None:
            train_labels, test_labels, ids = number(train.labels, test.labels, what)
        else:
            train_labels, test_labels = (in_range(part.labels, self.classes, what) for part in (train, test))
            ids = tuple(map(str, range(self.classes)))
        return replace(train, labels=train_labels), replace(test, labels=test_labels), ids

    def _names(self, archive: ArrayArchive, ids: tuple[str, ...]) -> tuple[str, ...]:
        member = self.names or next((name for name in _NAMES if name in archive.names), None)
        if member is None:
            return ids
        names = match_names(ids, archive.array(member, _MEMBERS).reshape(-1).tolist())
        if names is None and self.names:
            raise InvalidValue(
                f"The member `{member}` of `{self.place}` must name each of the {len(ids)} classes. It does not."
            )
        return names or ids
