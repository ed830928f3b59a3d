"""Factories: data from the user's own Python code."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from leaktight.core.factory import Reference, call_object, load_object
from leaktight.data.examples import as_data
from leaktight.data.source import Data, Source


class Factory(Source):
    """Data that a function of the user's own returns; the current folder can be imported from.

    The function takes nothing. It returns a pair (inputs, labels) of tensors or arrays, a torch `Dataset` of such
    pairs, or a `DataLoader`, of which a fifth is held out for testing; or two of these, for training and test; or a
    `Data`. Images are whole numbers from 0 to 255 or fractions in [0, 1]. The `classes` of a `Dataset` name its
    classes. Only a `Data` can tell of a private property: by the `properties` of its batches and its `property_name`.

    Args:
        function: `package.module:function`.
        classes: how many classes there are; None takes as many as are named, or the largest training label plus one.

    Example:
        >>> print(Factory(function="my_project.data:load", classes=10))
        factory(function='my_project.data:load', classes=10)
    """

    kind: Literal["factory"] = "factory"
    function: Reference
    classes: Annotated[int, Field(ge=2)] | None = None
    _run: ClassVar[int] = 0

    def read(self) -> Data:
        """Call the function and bring what it returns into form."""
        given = call_object(self.function)
        return as_data(given, f"`{self.function}`", f"The function `{self.function}` must return", self.classes)

    def stamp(self) -> Hashable:
        """Return the function itself and the run.

        A module that was reloaded has another function, and a function may read from anywhere.
        """
        return load_object(self.function), Factory._run

    @classmethod
    def start_run(cls) -> None:
        """Let every function be called again when its data are next asked for.

        What it reads may have changed since the last run.
        """
        Factory._run += 1
