"""A class in the place of the private property."""

import dataclasses
from typing import Literal

import pytest
import torch

from leaktight.core.errors import InvalidValue
from leaktight.data import Digits, RareDigit
from leaktight.data.class_property import ClassProperty
from leaktight.data.held_out import HeldOut
from leaktight.data.source import Source


@pytest.mark.parametrize("label", [0, 7])
def test_the_property_is_the_class(label):
    plain, marked = Digits().load(), ClassProperty(data=Digits(), label=label).load()
    for one, other in ((plain.train, marked.train), (plain.test, marked.test)):
        assert torch.equal(one.inputs, other.inputs)
        assert torch.equal(one.labels, other.labels)
        assert torch.equal(other.properties, (one.labels == label).long())
    assert marked.property_name == str(label)
    assert (marked.classes, marked.names) == (plain.classes, plain.names)


def test_without_a_label_it_is_the_commonest_class():
    assert ClassProperty(data=RareDigit()).load().property_name == "other"


def test_a_class_that_is_not_there_is_refused():
    with pytest.raises(InvalidValue, match="must be from 0 to 9"):
        ClassProperty(data=Digits(), label=10).load()


def test_what_is_held_out_keeps_its_property():
    held = HeldOut(data=ClassProperty(data=Digits(), label=3)).load()
    assert held.property_name == "3"
    for part in (held.train, held.test):
        assert torch.equal(part.properties, (part.labels == 3).long())


def test_a_property_is_zero_or_one_for_each():
    class Odd(Source):
        kind: Literal["test_odd_property"] = "test_odd_property"
        value: float = 0.7

        def read(self):
            found = Digits().read()
            properties = torch.zeros(len(found.train.labels))
            properties[0] = self.value
            train = dataclasses.replace(found.train, properties=properties)
            return dataclasses.replace(found, train=train, property_name="odd")

    with pytest.raises(InvalidValue, match=r"The training data of .* must have a property of 0 or 1 for each example"):
        Odd().load()
    with pytest.raises(InvalidValue, match="must have examples with and without the property"):
        Odd(value=0.0).load()
    with pytest.raises(InvalidValue, match=r"The test data of .* must have a property of 0 or 1"):
        Odd(value=1.0).load()
