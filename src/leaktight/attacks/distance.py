"""Distances between a candidate's gradient and the observed one.

Each takes named tensors of one victim and returns a scalar; the engine maps it over victims.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor

from leaktight.core.message import Tensors

DistanceName = Literal["l2", "l1", "cosine", "layer_cosine"]
Distance = Callable[[Tensors, Tensors], Tensor]

# A norm below this counts as this: the cosine of a vanished gradient is then 0 and its slope finite.
SMALLEST_NORM = 1e-12


def l2(candidate: Tensors, observed: Tensors) -> Tensor:
    """Return the squared Euclidean distance over all tensors."""
    return _total([(candidate[name] - observed[name]).square().sum() for name in observed])


def l1(candidate: Tensors, observed: Tensors) -> Tensor:
    """Return the sum of absolute differences over all tensors."""
    return _total([(candidate[name] - observed[name]).abs().sum() for name in observed])


def cosine(candidate: Tensors, observed: Tensors) -> Tensor:
    """Return one minus the cosine of the whole gradients."""
    inner = _total([(candidate[name] * observed[name]).sum() for name in observed])
    return 1 - inner / (_norm(candidate, observed) * _norm(observed, observed))


def layer_cosine(candidate: Tensors, observed: Tensors) -> Tensor:
    """Return one minus the cosine, averaged over tensors."""
    each = [cosine({name: candidate[name]}, {name: observed[name]}) for name in observed]
    return _total(each) / len(each)


DISTANCES: dict[str, Distance] = {"l2": l2, "l1": l1, "cosine": cosine, "layer_cosine": layer_cosine}


def _norm(tensors: Tensors, names: Tensors) -> Tensor:
    return _total([tensors[name].square().sum() for name in names]).clamp_min(SMALLEST_NORM**2).sqrt()


def _total(parts: list[Tensor]) -> Tensor:
    return torch.stack(parts).sum()
