"""A small federation and the two parties of small split models, fast enough to be trained in a test."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from typing import Literal

import pytest
import torch
from torch import nn

from leaktight.core import registry
from leaktight.core.defence import Defence, Undefended
from leaktight.core.draws import PublicSeed
from leaktight.core.errors import Refusal
from leaktight.core.local import Local
from leaktight.core.task import Batch, Model, Task
from leaktight.data import RareDigit
from leaktight.learning import BatchOrder, FeatureParty, LabelParty, Sgd
from leaktight.learning.client import Client
from leaktight.learning.task import classification
from leaktight.models import MLP, DLNet, WideDeep, halves


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


@dataclasses.dataclass
class Table:
    """Rows at both parties, and how the model is cut for them."""

    features: torch.Tensor
    own: torch.Tensor | None
    labels: torch.Tensor
    made: object

    def parties(self, optimiser=None, defence=None, batch_size=16, seed=0):
        made = copy.deepcopy(self.made)
        order = BatchOrder(len(self.labels), batch_size, seed)
        optimiser = optimiser or Sgd(learning_rate=0.1)
        feature = FeatureParty(made.bottom, self.features, order, Local("feature-party", seed), optimiser)
        label = LabelParty(
            made.top,
            self.labels,
            BatchOrder(len(self.labels), batch_size, seed),
            Local("label-party", seed),
            made.shape,
            self.own,
            optimiser,
            defence or Undefended(),
        )
        return feature, label


def _tables(kind: str) -> Table:
    if kind == "image":
        data = RareDigit(form="image").load().train
        return Table(
            data.inputs, None, data.labels, halves(DLNet(width=3), (1, 8, 8), 2, PublicSeed(1), cut="sigmoid2")
        )
    if kind == "numbers":
        data = RareDigit().load().train
        return Table(data.inputs, None, data.labels, halves(MLP(hidden=(9, 5)), (64,), 2, PublicSeed(1), cut="relu1"))
    levels = RareDigit(form="levels").load()
    own, rest = levels.columns.find(["r0*", "r1*"]), levels.columns.find(["r2*", "r3*", "r4*"])
    made = halves(WideDeep(hidden=(9, 5)), levels.columns.take(rest), 2, PublicSeed(1), own=levels.columns.take(own))
    inputs = levels.train.inputs
    return Table(inputs[:, list(rest)], inputs[:, list(own)], levels.train.labels, made)


def _curve(feature: FeatureParty, label: LabelParty, steps: int) -> list[float]:
    """Exchange messages for some steps and return the label party's losses."""
    losses, message = [], feature.respond(label.opening())
    for _ in range(steps):
        answer = label.answer(message)
        losses.append(answer.loss.item())
        message = feature.respond(answer.sent)
    return losses


def _same(one, other) -> bool:
    """Whether two tables hold the same tensors and numbers."""
    return one.keys() == other.keys() and all(
        torch.equal(torch.as_tensor(one[name]), torch.as_tensor(other[name])) for name in one
    )


class Counting(Defence):
    """Remembers and notes something, in place too, before it fails at a step."""

    kind: Literal["test_counting"] = "test_counting"
    fails: int = -1

    def on_message(self, message, local):
        local.memory.setdefault("steps", torch.zeros(1)).add_(1)
        local.memory["last"] = {"round": float(message.round)}
        local.notes["count.steps"] = local.memory["steps"].item()
        if message.round == self.fails:
            raise Refusal("This message cannot be protected.")
        return message


# Checks over all defences must not find it.
registry._classes["defence"].pop("test_counting")


@pytest.fixture(scope="session")
def tables() -> Callable[[str], Table]:
    return _tables


@pytest.fixture(scope="session")
def curve() -> Callable[[FeatureParty, LabelParty, int], list[float]]:
    return _curve


@pytest.fixture(scope="session")
def same() -> Callable[..., bool]:
    return _same


@pytest.fixture(scope="session")
def counting() -> type[Counting]:
    return Counting
