"""The digest of what a scenario's settings only name: examples, and the model that its recipe makes.

A model is also asked about a few fixed examples: that shows what no source does, such as state, environment and native
code.
"""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Iterator, Mapping
from functools import lru_cache, partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from leaktight.core.digest import digest, tensor_parts
from leaktight.core.scenario import Content
from leaktight.data.source import KEPT, Data
from leaktight.models.trial import Failure, attempt

MODEL, RESPONSE = "the model's initial parameters", "what the model makes of a fixed batch"
_PRECISIONS = ((torch.float64, 5), (torch.float32, 2))
"""In double precision, rounding by another processor or number of threads lies far below the digits compared.

Not every model runs in it.
"""
_TINY = 1e-9


@dataclasses.dataclass(frozen=True)
class ContentDigest:
    """What a scenario's settings only name, in short.

    Args:
        parts: a digest of each thing, by a name that a person knows.
        classes: the classes of its model's layers.
    """

    parts: Mapping[str, str] = dataclasses.field(default_factory=dict)
    classes: frozenset[type] = frozenset()


def digest_content(content: Content) -> ContentDigest:
    """Return the digest of what a scenario names."""
    model = content.model
    if model is None or content.labels is None:
        return ContentDigest(content.digests)
    response = digest_response(model, content.inputs, content.labels)
    parts = {MODEL: digest(str(model), *tensor_parts(model.state_dict())), RESPONSE: response}
    return ContentDigest({**content.digests, **parts}, frozenset(type(layer) for layer in model.modules()))


@lru_cache(maxsize=KEPT)
def digest_data(data: Data) -> str:
    """Return a digest of every example of a data set, and of what is known of it."""
    tensors = {
        f"{part} {name}": tensor
        for part, batch in (("train", data.train), ("test", data.test))
        for name, tensor in (("x", batch.inputs), ("y", batch.labels), ("property", batch.properties))
        if tensor is not None
    }
    stated = [] if data.constants is None else [repr(data.constants)]
    return digest(
        str(data.classes), data.property_name, repr(data.columns), *data.names, *stated, *tensor_parts(tensors)
    )


def digest_response(model: nn.Module, inputs: tuple[Tensor, ...], labels: Tensor) -> str:
    """Return a digest of a model's outputs, and of its gradient under cross entropy, on a batch.

    They are rounded, so that machines that compute alike agree. A model that is random on purpose, or fails, has a
    digest that says so: it is what its cells will say, too.

    Args:
        model: what is asked; it is copied.
        inputs: what it is called with, on the CPU; integers keep their type, and floats are converted.
        labels: one class for each example.

    Example:
        >>> layer = nn.Linear(2, 2, bias=False)
        >>> batch = (torch.eye(2),), torch.tensor([0, 1])
        >>> before = digest_response(layer, *batch)
        >>> before == digest_response(layer, *batch), before == digest_response(nn.Sequential(layer, nn.Tanh()), *batch)
        (True, False)
    """
    reason = ""
    for precision, digits in _PRECISIONS:
        ask = partial(_sketch, model, inputs, labels, precision, digits)
        try:
            first, second = attempt(ask), attempt(ask)
            return digest(first) if first == second else "random"
        except Failure as failure:
            reason = type(failure.__cause__).__name__
    return f"failed with {reason}"


def _answers(model: nn.Module, inputs: tuple[Tensor, ...], labels: Tensor, precision: torch.dtype) -> dict[str, Tensor]:
    copied = copy.deepcopy(model).cpu().to(precision)
    given = [part.to(precision) if part.is_floating_point() else part for part in inputs]
    parameters = {name: parameter for name, parameter in copied.named_parameters() if parameter.requires_grad}
    outputs = copied(*given)
    gradients = torch.autograd.grad(
        F.cross_entropy(outputs, labels), list(parameters.values()), allow_unused=True, materialize_grads=True
    )
    return {"outputs": outputs.detach(), **dict(zip(parameters, gradients, strict=True))}


def _sketch(model: nn.Module, inputs: tuple[Tensor, ...], labels: Tensor, precision: torch.dtype, digits: int) -> str:
    """Return the length of each tensor that a model answers with, and its projection on a fixed direction, rounded."""
    tensors = _answers(model, inputs, labels, precision)
    norms = {name: tensor.double().norm().item() for name, tensor in tensors.items()}
    least = _TINY * max((norm for norm in norms.values() if math.isfinite(norm)), default=0.0)

    def lines() -> Iterator[str]:
        for name, tensor in tensors.items():
            flat, norm = tensor.double().flatten(), norms[name]
            if not math.isfinite(norm) or norm <= least:
                yield f"{name} {norm if norm > least else 0}"
                continue
            along = torch.dot(flat, torch.cos(torch.arange(len(flat), dtype=torch.float64))).item() / norm
            # Adding 0 makes a zero of either sign the same.
            yield f"{name} {norm:.{digits}e} {round(along, digits) + 0.0:.{digits}f}"

    return "\n".join(lines())
