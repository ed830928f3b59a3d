"""Remaining leak: what is left once layers are sealed, in an order that no message was asked about."""

from __future__ import annotations

import pytest
import torch

from leaktight.core.message import layer_of
from leaktight.core.random import stream
from leaktight.probes import RemainingLeak
from leaktight.testing import null_run, property_run

PROBE = RemainingLeak(gradients=80, classifier="logistic")


@pytest.fixture(scope="module")
def run():
    return property_run(rounds=60)


def read(run, probe=PROBE):
    return {(one.name, one.layer): one for one in probe.read(run, stream(0, "remaining")).readings}


def test_layers_are_sealed_one_after_the_other_with_their_bytes(run):
    found = read(run)
    sizes = {}
    for name, tensor in run.public.public_parameters().items():
        sizes[layer_of(name)] = sizes.get(layer_of(name), 0) + tensor.nbytes
    order = sorted(sizes, key=lambda layer: found["sealed_layers", layer].value)
    assert [found["sealed_layers", layer].value for layer in order] == [1, 2]
    assert found["sealed_bytes", order[0]].value == sizes[order[0]]
    assert found["sealed_bytes", order[1]].value == sum(sizes.values())
    last = found["remaining_auc", order[1]]
    assert (last.value, last.low, last.high) == (0.5, None, None)
    assert found["remaining_auc", None].value > 0.8


def test_of_noise_nothing_remains(run):
    found = [read(null_run(run, seed))["remaining_auc", None].value for seed in range(3)]
    assert abs(sum(found) / len(found) - 0.5) < 0.15


def test_counting_labels_is_told_apart(run):
    """The toy's property goes with no label, so that counting them tells little."""
    baseline = read(run)["counting_auc", None]
    assert baseline.leaks is None
    assert baseline.value < read(run)["remaining_auc", None].value


def test_the_order_hangs_on_gradients_of_its_own_alone(run):
    one, other = (read(each) for each in (run, null_run(run, 1)))
    places = [{key: value.value for key, value in found.items() if key[0] == "sealed_layers"} for found in (one, other)]
    assert places[0] == places[1]
    assert torch.tensor([one["remaining_auc", None].value]) > other["remaining_auc", None].value
