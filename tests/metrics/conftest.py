"""Truths to grade against: one GroundTruth for each message, with raw and used examples as given."""

import pytest
import torch
from torch import nn

from leaktight.core.message import Kind, Message
from leaktight.core.run import GroundTruth
from leaktight.core.task import Batch, Model, Task

torch.set_num_threads(1)


@pytest.fixture
def ground_truths():
    def make(raw, used=None, labels=None, classes=10):
        used = raw if used is None else used
        labels = [torch.zeros(len(inputs), dtype=torch.long) for inputs in raw] if labels is None else labels
        shape = tuple(raw[0].shape[1:])
        task = Task(
            Model(nn.Identity(), nn.Linear(1, 1)), nn.functional.cross_entropy, lambda outputs: outputs, shape, classes
        )
        message = Message(Kind.GRADIENT, "client", "server", 0, {})
        return tuple(
            GroundTruth(task, Batch(before, targets), Batch(after, targets), message, message)
            for before, after, targets in zip(raw, used, labels, strict=True)
        )

    return make


@pytest.fixture
def photos():
    """Eight smooth colour images in [0, 1], as two messages of four."""
    rng = torch.Generator().manual_seed(1)
    coarse = torch.rand(8, 3, 4, 4, generator=rng)
    images = nn.functional.interpolate(coarse, size=(16, 16), mode="bilinear")
    return [images[:4], images[4:]]


def keys_of(count):
    return tuple((f"client-{position}", 0) for position in range(count))


@pytest.fixture
def reconstruction():
    from leaktight.core.attack import Reconstruction

    def make(inputs, labels=None):
        return Reconstruction(keys_of(len(inputs)), tuple(inputs), None if labels is None else tuple(labels))

    return make
