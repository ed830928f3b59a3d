"""Test examples in the place of training data: what an attack on examples that no model has learned from needs."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable
from typing import Annotated, Literal

import torch
from pydantic import Field, SerializeAsAny

from leaktight.core.errors import InvalidValue
from leaktight.data.source import Data, Source


class TestPart(Source):
    """Another source whose first test examples are what participants own; the rest of its test part is public.

    A model that was trained on the source's training part has not seen them, nor has any score that is taken on the
    rest. Inputs are standardised by the constants of the whole test part, as where the model was trained.

    Args:
        data: the source.
        owned: how many test examples participants own, at least 1.

    Example:
        >>> from leaktight.data import Digits
        >>> part = TestPart(data=Digits(), owned=100).load()
        >>> len(Digits().load().test), len(part.train), len(part.test)
        (359, 100, 259)
    """

    # Its name begins as that of a class of tests.
    __test__ = False
    kind: Literal["test_part"] = "test_part"
    data: SerializeAsAny[Source]
    owned: Annotated[int, Field(ge=1)] = 100

    def stamp(self) -> Hashable:
        """Return the stamp of the source."""
        return self.data.stamp()

    def read(self) -> Data:
        """Read the source and divide its test part."""
        data = self.data.load()
        if self.owned >= len(data.test):
            raise InvalidValue(
                f"The `owned` of {self.kind} must be less than the {len(data.test)} test examples. Got {self.owned} "
                "instead."
            )
        places = torch.arange(len(data.test))
        owned, rest = places[: self.owned], places[self.owned :]
        return dataclasses.replace(
            data, train=data.test.take(owned), test=data.test.take(rest), constants=data.statistics()
        )
