from __future__ import annotations

import dataclasses
import enum
from typing import Any

import numpy as np
import pytest
import torch

from leaktight.defences import GaussianNoise
from leaktight.running.plain_value import text_of


class Sort(enum.Enum):
    ONE = 1
    TWO = 2


@dataclasses.dataclass(frozen=True)
class Size:
    wide: float


PAIRS = [
    (1, 2),
    (1, 1.0),
    (1, True),
    (0.0, -0.0),
    ("a", b"a"),
    ((1, 2), [1, 2]),
    ({"a": 1}, {"a": 2}),
    ({1, 2}, {1, 3}),
    (("a", "b"), ("a, b",)),
    (Sort.ONE, Sort.TWO),
    (Size(1.0), Size(2.0)),
    (torch.zeros(2), torch.zeros(1, 2)),
    (torch.zeros(2), torch.ones(2)),
    (np.zeros(2), np.zeros(2, dtype=np.float32)),
    (torch.float32, torch.float64),
    (GaussianNoise(std=0.1), GaussianNoise(std=0.2)),
]


@pytest.mark.parametrize(("one", "two"), PAIRS, ids=str)
def test_values_that_differ_have_texts_that_differ(one: Any, two: Any) -> None:
    assert text_of(one) == text_of(one) != text_of(two)
    assert None not in (text_of(one), text_of(two))


@pytest.mark.parametrize(
    "value",
    [object(), print, (1, object()), {"a": print}, {print}, np.array([object()]), torch.zeros(2, device="meta")],
    ids=["object", "function", "tuple", "dictionary", "set", "array", "tensor"],
)
def test_what_has_no_text_that_lasts_has_none(value: Any) -> None:
    assert text_of(value) is None


def test_no_number_is_the_same_as_itself() -> None:
    assert text_of(float("nan")) == text_of(-float("nan"))


def test_the_folder_in_which_code_lies_does_not_count() -> None:
    folders = ["/home", "/home/me/code"]
    assert text_of(("/home/me/code/x.csv", "x"), folders) == "('./x.csv', 'x')"
