"""A small federation on table data, fast enough to be trained in a test."""

import pytest
import torch
from torch import nn

from leaktight.core.defence import Undefended
from leaktight.core.local import Local
from leaktight.core.task import Batch, Model, Task
from leaktight.learning.client import Client
from leaktight.learning.task import classification


@pytest.fixture
def task() -> Task:
    generator = torch.Generator().manual_seed(1)
    model = Model(nn.Sequential(nn.Linear(6, 8), nn.Tanh()), nn.Linear(8, 3))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) / 3)
    return classification(model, (6,), 3)


@pytest.fixture
def data() -> Batch:
    generator = torch.Generator().manual_seed(2)
    labels = torch.arange(60) % 3
    return Batch(torch.randn(60, 6, generator=generator) + 2 * labels[:, None], labels)


@pytest.fixture
def make(task, data):
    def build(name="client-0", part=slice(None), defence=None, **settings) -> Client:
        mine = Batch(data.inputs[part], data.labels[part])
        return Client(name, task, mine, defence or Undefended(), Local(name, seed=0), **settings)

    return build
