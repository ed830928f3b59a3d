"""Content: what a scenario's settings only name: examples, captured messages, and the model that its recipe makes."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import lru_cache, singledispatch

import torch
from torch import Tensor, nn

from leaktight.audit.probe_batch import EXAMPLES, digest_response
from leaktight.captures import Captured
from leaktight.captures.capture import LARGEST_FILE
from leaktight.core.digest import digest, tensor_parts
from leaktight.core.draws import PublicSeed
from leaktight.core.input_file import digest_input
from leaktight.core.scenario import Scenario
from leaktight.data.source import KEPT, Data
from leaktight.learning.federated import Federated
from leaktight.learning.split import Split
from leaktight.learning.standalone import Standalone
from leaktight.models.halves import Halves
from leaktight.models.trial import trial_inputs

CAPTURES = "the captured messages"
MODEL, RESPONSE = "the model's initial parameters", "what the model makes of a fixed batch"


@dataclasses.dataclass(frozen=True)
class Content:
    """What a scenario's settings only name.

    Args:
        parts: a digest of each thing, by a name that a person knows.
        classes: the classes of its model's layers.
    """

    parts: Mapping[str, str] = dataclasses.field(default_factory=dict)
    classes: frozenset[type] = frozenset()


@singledispatch
def contents(scenario: Scenario, seed: int) -> Content:
    """Return what a scenario names beside data and code; nothing is known of a kind without its own answer.

    A scenario of a new kind registers its own answer with `contents.register`.
    """
    return Content()


@contents.register
def _(scenario: Federated, seed: int) -> Content:
    data = scenario.data.load()
    model = scenario.task(data, seed).model
    return _of_model(model, (model,), (data.test.inputs[:EXAMPLES],), data.test.labels[:EXAMPLES])


@contents.register
def _(scenario: Standalone, seed: int) -> Content:
    return contents(scenario.federation, seed)


@contents.register
def _(scenario: Split, seed: int) -> Content:
    data = scenario.data.load()
    made = scenario.halves(data, PublicSeed(seed))
    features, own = scenario.divide_rows(data.test.inputs[:EXAMPLES])
    inputs = (features,) if own is None else (features, own)
    return _of_model(_Joined(made), (made.bottom, made.top), inputs, data.test.labels[:EXAMPLES])


@contents.register
def _(scenario: Captured, seed: int) -> Content:
    files = [part for path in scenario.files() for part in (path.name, digest_input(path, LARGEST_FILE).hex())]
    task = scenario.task(scenario.captures()[0])
    inputs = trial_inputs(task.model, task.shape).cpu()
    found = _of_model(task.model, (task.model,), (inputs,), torch.zeros(len(inputs), dtype=torch.long))
    return Content({CAPTURES: digest(*files), **found.parts}, found.classes)


class _Joined(nn.Module):
    """Two halves of a network as one."""

    def __init__(self, made: Halves) -> None:
        super().__init__()
        self.bottom, self.top = made.bottom, made.top

    def forward(self, features: Tensor, own: Tensor | None = None) -> Tensor:
        scores: Tensor = self.top(self.bottom(features), own)
        return scores


def _of_model(model: nn.Module, halves: tuple[nn.Module, ...], inputs: tuple[Tensor, ...], labels: Tensor) -> Content:
    tensors = [part for half in halves for part in (str(half), *tensor_parts(half.state_dict()))]
    classes = frozenset(type(layer) for half in halves for layer in half.modules())
    return Content({MODEL: digest(*tensors), RESPONSE: digest_response(model, inputs, labels)}, classes)


@lru_cache(maxsize=KEPT)
def digest_data(data: Data) -> str:
    """Return a digest of every example of a data set, and of what is known of it."""
    tensors = {
        f"{part} {name}": tensor
        for part, batch in (("train", data.train), ("test", data.test))
        for name, tensor in (("x", batch.inputs), ("y", batch.labels), ("property", batch.properties))
        if tensor is not None
    }
    return digest(str(data.classes), data.property_name, repr(data.columns), *data.names, *tensor_parts(tensors))
