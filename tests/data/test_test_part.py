"""The test part: its first examples are owned, the rest is public, and inputs are standardised as before."""

import pytest
import torch

from leaktight.core.errors import InvalidValue
from leaktight.data import Digits, TestPart


def test_the_first_test_examples_are_owned() -> None:
    whole, part = Digits().load(), TestPart(data=Digits(), owned=7).load()
    assert torch.equal(part.train.inputs, whole.test.inputs[:7])
    assert torch.equal(part.test.inputs, whole.test.inputs[7:])
    assert torch.equal(part.test.labels, whole.test.labels[7:])
    assert part.statistics() == whole.statistics()


def test_something_must_be_left() -> None:
    with pytest.raises(InvalidValue, match=r"The `owned` of test_part must be less than the 359 test examples"):
        TestPart(data=Digits(), owned=359).load()
