"""Training objects: what an optimiser and a loader of torch say of how a message is made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.utils.data import DataLoader

_DEFAULTS: dict[str, dict[str, Any]] = {
    "sgd": {"nesterov": False, "dampening": 0, "maximize": False},
    "adam": {"betas": (0.9, 0.999), "amsgrad": False, "maximize": False, "decoupled_weight_decay": False},
}
"""What else the optimisers that attacks replay must be at."""
_READ = {"lr": "learning_rate", "momentum": "momentum", "weight_decay": "weight_decay"}


def read_optimiser(optimiser: torch.optim.Optimizer) -> dict[str, Any]:
    """Return what a torch optimiser says of its steps, as fields of `Known`; what differs among its groups is left out.

    One of a known kind with unusual settings, such as Nesterov momentum, is named by its kind and that it is unusual,
    because its steps are others.

    Example:
        >>> weight = torch.nn.Parameter(torch.zeros(2))
        >>> read_optimiser(torch.optim.SGD([weight], lr=0.1, momentum=0.9))
        {'optimiser': 'sgd', 'learning_rate': 0.1, 'momentum': 0.9, 'weight_decay': 0.0}
        >>> read_optimiser(torch.optim.SGD([weight], lr=0.1, momentum=0.9, nesterov=True))["optimiser"]
        'sgd-unusual'
    """
    groups = optimiser.param_groups
    kind = type(optimiser).__name__.lower()
    usual = all(group.get(name, value) == value for group in groups for name, value in _DEFAULTS.get(kind, {}).items())
    read: dict[str, Any] = {"optimiser": kind if usual else f"{kind}-unusual"}
    for name, field in _READ.items():
        values = {float(group[name]) for group in groups if name in group}
        if len(values) == 1:
            read[field] = values.pop()
    return read


def read_loader(loader: DataLoader[Any]) -> dict[str, Any]:
    """Return what a torch loader says of its batches, as fields of `Known`: their size, and what normalises examples.

    The normalisation is read off a `Normalize` among the transforms of the data set. Without one it stays unknown,
    because examples can be normalised anywhere else. No example is looked at.

    Example:
        >>> from torch.utils.data import TensorDataset
        >>> data = TensorDataset(torch.zeros(10, 1, 8, 8), torch.zeros(10))
        >>> read_loader(DataLoader(data, batch_size=4))
        {'dataset_size': 10, 'batch_size': 4, 'shape': (1, 8, 8)}
    """
    data: Any = loader.dataset
    read: dict[str, Any] = {}
    if hasattr(data, "__len__"):
        read["dataset_size"] = len(data)
    if loader.batch_size is not None:
        read["batch_size"] = loader.batch_size
    tensors = getattr(data, "tensors", None)
    if isinstance(tensors, tuple) and tensors and isinstance(tensors[0], torch.Tensor):
        read["shape"] = tuple(tensors[0].shape[1:])
    normalise = next((part for part in _transforms(data) if type(part).__name__ == "Normalize"), None)
    if normalise is not None:
        read |= {name: tuple(map(float, getattr(normalise, name))) for name in ("mean", "std")}
    return read


def _transforms(data: Any) -> Iterator[Any]:
    """Yield the transforms of a data set, those of what it is a subset of, and the parts of composed ones."""
    while data is not None:
        pending = [getattr(data, "transform", None)]
        while pending:
            part = pending.pop()
            if part is not None:
                yield part
                pending += list(getattr(part, "transforms", ()))
        data = getattr(data, "dataset", None)
