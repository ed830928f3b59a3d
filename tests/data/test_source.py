from __future__ import annotations

import dataclasses
from collections.abc import Hashable
from typing import Literal

import numpy as np
import pytest
import torch

from leaktight.core import registry
from leaktight.core.task import Batch
from leaktight.data import Data, Source

READS = []
CURRENT: dict[str, object] = {}


class Probe(Source):
    kind: Literal["test_source_probe"] = "test_source_probe"
    name: str = "a"

    def stamp(self) -> Hashable:
        return CURRENT.get("stamp")

    def read(self) -> Data:
        READS.append(self.name)
        data = CURRENT["data"]
        assert isinstance(data, Data)
        return data


# Tests elsewhere look at every registered class; this one is nobody's business.
registry._classes["data"].pop("test_source_probe")


def good(**changes) -> Data:
    inputs = torch.rand(6, 3, 4, 4, generator=torch.Generator().manual_seed(0))
    labels = torch.tensor([0, 1, 2, 0, 1, 2])
    return dataclasses.replace(Data(Batch(inputs, labels), Batch(inputs[:3], labels[:3]), 3), **changes)


def load(data: Data) -> Data:
    CURRENT.update(data=data, stamp=object())
    return Probe().load()


def test_good_data_comes_through_unchanged():
    data = good()
    loaded = load(data)
    assert loaded.train.inputs is data.train.inputs
    assert loaded.test.labels is data.test.labels


@pytest.mark.parametrize("floats", [torch.float64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("integers", [torch.int32, torch.uint8])
def test_other_types_become_those_that_a_network_is_trained_with(floats, integers):
    data = good()
    batch = Batch(data.train.inputs.to(floats), data.train.labels.to(integers))
    loaded = load(dataclasses.replace(data, train=batch, test=batch))
    for part in (loaded.train, loaded.test):
        assert (part.inputs.dtype, part.labels.dtype) == (torch.float32, torch.int64)
    layer = torch.nn.Linear(48, 3)
    torch.nn.functional.cross_entropy(layer(loaded.train.inputs.flatten(1)), loaded.train.labels).backward()
    assert torch.isfinite(layer.weight.grad).all()


def test_a_number_too_large_for_single_precision_is_not_finite(says):
    rows = Batch(torch.tensor([[1e300], [1.0]], dtype=torch.float64), torch.tensor([0, 1]))
    with says("training data", "finite numbers", "in 1 examples"):
        load(Data(rows, rows, 2))


def test_statistics_are_those_of_the_public_part():
    data = good()
    mean, std = data.statistics()
    pixels = data.test.inputs.double().numpy()
    np.testing.assert_allclose(mean, pixels.mean((0, 2, 3)), rtol=1e-12)
    np.testing.assert_allclose(std, pixels.std((0, 2, 3)), rtol=1e-12)
    private = Batch(1 - data.train.inputs, data.train.labels)
    assert dataclasses.replace(data, train=private).statistics() == (mean, std)


def test_statistics_of_a_constant_column_do_not_blow_up():
    rows = torch.tensor([[1.0, 5.0], [3.0, 5.0]])
    data = Data(Batch(rows, torch.tensor([0, 1])), Batch(rows, torch.tensor([0, 1])), 2)
    assert data.statistics() == ((2.0, 5.0), (1.0, 1.0))


def test_statistics_of_one_example_are_finite():
    one = Batch(torch.tensor([[1.0, 2.0]]), torch.tensor([0]))
    assert Data(one, one, 2).statistics() == ((1.0, 2.0), (1.0, 1.0))


def broken(**parts) -> Data:
    data = good()
    return dataclasses.replace(data, test=dataclasses.replace(data.test, **parts))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (good(classes=1), ("at least 2 classes", "Got 1")),
        (good(names=("a", "b")), ("as many as its 3 classes", "Got 2")),
        (broken(inputs=torch.rand(3, 3, 4, 5)), ("test data", "shape (3, 4, 4)", "Got (3, 4, 5)")),
        (broken(inputs=torch.rand(2, 3, 4, 4)), ("test data", "one label for each example", "(2, 3, 4, 4)", "(3,)")),
        (broken(labels=torch.zeros(3, 1, dtype=torch.long)), ("one label for each example", "(3, 1)")),
        (broken(inputs=torch.rand(0, 3, 4, 4), labels=torch.zeros(0, dtype=torch.long)), ("at least one example",)),
        (broken(inputs=torch.full((3, 3, 4, 4), torch.nan)), ("finite numbers", "3 examples", "remove or fill")),
        (broken(inputs=torch.ones(3, 3, 4, 4, dtype=torch.uint8)), ("floating point", "torch.uint8")),
        (broken(inputs=torch.full((3, 3, 4, 4), 1.5)), ("pixels in [0, 1]", "1.5")),
        (broken(inputs=torch.full((3, 3, 4, 4), -0.5)), ("pixels in [0, 1]", "-0.5")),
        (broken(labels=torch.tensor([0, 1, 3])), ("labels from 0 to 2", "0 to 3")),
        (broken(labels=torch.tensor([0, 1, -1])), ("labels from 0 to 2", "-1 to 1")),
        (broken(labels=torch.tensor([0.0, 1.0, 2.0])), ("whole numbers as labels", "torch.float32")),
        (broken(labels=torch.tensor([True, False, True])), ("whole numbers as labels", "torch.bool")),
        (good(train=Batch(torch.rand(3), torch.tensor([0, 1, 2]))), ("(channels, height, width) or (columns,)",)),
        (good(train=Batch(torch.rand(3, 4, 4), torch.tensor([0, 1, 2]))), ("(channels, height, width)", "Got (4, 4)")),
        (good(train=Batch(torch.rand(3, 0), torch.tensor([0, 1, 2]))), ("(columns,)", "Got (0,)")),
    ],
)
def test_bad_data_is_refused_in_a_sentence(data, words, says):
    with says(*words):
        load(data)


def test_one_nan_pixel_is_counted_as_one_example(says):
    data = good()
    data.train.inputs[4, 1, 2, 3] = float("inf")
    with says("training data", "in 1 examples"):
        load(data)


def test_the_last_two_data_sets_are_kept_until_settings_or_stamp_change():
    READS.clear()
    CURRENT.update(data=good(), stamp=1)
    first = Probe().load()
    assert Probe().load() is first
    assert READS == ["a"]
    CURRENT["stamp"] = 2
    Probe().load()
    Probe(name="b").load()
    Probe(name="a").load()
    assert READS == ["a", "a", "b"]
    Probe(name="c").load()
    Probe(name="b").load()
    Probe(name="a").load()
    assert READS == ["a", "a", "b", "c", "a"]


def test_refused_data_is_not_kept(says):
    CURRENT.update(data=good(classes=1), stamp="same")
    for _ in range(2):
        with says("at least 2 classes"):
            Probe().load()
