"""Data in memory: found by name while they are held, and in the units that their network takes."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from leaktight.core.in_memory import hold
from leaktight.core.task import Batch, Normalise
from leaktight.data import Columns, Data, InMemory
from leaktight.data.in_memory import keep_units


def images(low=0.0, high=1.0, channels=3):
    inputs = low + (high - low) * torch.rand(12, channels, 4, 4)
    return Data(Batch(inputs[:8], torch.arange(8) % 2), Batch(inputs[8:], torch.arange(4) % 2), 2)


def table():
    inputs = torch.randn(12, 3) * torch.tensor([1.0, 100.0, 0.01]) + torch.tensor([0.0, 50.0, -3.0])
    return Data(Batch(inputs[:8], torch.arange(8) % 2), Batch(inputs[8:], torch.arange(4) % 2), 2)


def test_data_are_found_by_name_and_others_of_the_same_name_are_others(says):
    first, second = images(), images()
    for data in (first, second):
        with hold({("data", "mine"): data}):
            assert torch.equal(InMemory(name="mine").load().train.inputs, data.train.inputs)
    with says("`mine` was in the memory of a program", "audit_model"):
        InMemory(name="mine").load()


def test_what_is_not_data_is_not_found(says):
    with hold({("data", "mine"): 3}), says("is not here"):
        InMemory(name="mine").load()


@pytest.mark.parametrize(
    "data",
    [images(), images(-2.1, 2.6), images(0, 255, channels=1), table()],
    ids=["pixels", "normalised", "bytes", "table"],
)
def test_a_network_sees_what_was_handed_over(data):
    changed = keep_units(data)
    seen = Normalise(*changed.statistics())(changed.train.inputs)
    torch.testing.assert_close(seen, data.train.inputs, rtol=1e-4, atol=1e-4)
    if len(data.shape) == 3:
        assert changed.train.inputs.min() >= 0
        assert changed.train.inputs.max() <= 1
    else:
        torch.testing.assert_close(changed.test.inputs.mean(0), torch.zeros(3), rtol=0, atol=1e-4)


def test_pixels_ids_and_stated_constants_stay():
    pixels = images()
    assert torch.equal(keep_units(pixels).train.inputs, pixels.train.inputs)
    ids = dataclasses.replace(table(), columns=Columns(("a", "b", "c"), (0, 9, 0)))
    assert torch.equal(keep_units(ids).train.inputs[:, 1], ids.train.inputs[:, 1])
    stated = dataclasses.replace(images(-1, 1), constants=((0.5,) * 3, (0.5,) * 3))
    assert keep_units(stated) is stated
    assert stated.statistics() == ((0.5,) * 3, (0.5,) * 3)


def test_a_channel_that_never_varies_stays_finite():
    data = images(-1, 1)
    data.train.inputs[:, 0], data.test.inputs[:, 0] = -3, -3
    changed = keep_units(data)
    assert torch.equal(changed.train.inputs[:, 0], torch.zeros(8, 4, 4))
    torch.testing.assert_close(Normalise(*changed.statistics())(changed.train.inputs)[:, 0], data.train.inputs[:, 0])


def test_numbers_that_no_network_takes_are_left_to_the_check(says):
    broken = images()
    broken.train.inputs[0] = torch.nan
    assert keep_units(broken) is broken
    with hold({("data", "mine"): broken}), says("must be finite numbers"):
        InMemory(name="mine").load()
