"""Settings of an app: how its participants train, as far as its configuration and its objects say it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from flwr.app import ConfigRecord
from torch.utils.data import DataLoader

from leaktight.captures.known import Known
from leaktight.captures.training import read_loader, read_optimiser
from leaktight.core.errors import InvalidValue

NAMES = {
    "optimiser": ("optimizer", "optimiser"),
    "learning_rate": ("lr", "learning-rate", "learning_rate"),
    "momentum": ("momentum",),
    "weight_decay": ("weight-decay", "weight_decay"),
    "batch_size": ("batch-size", "batch_size"),
    "epochs": ("local-epochs", "local_epochs", "epochs"),
    "local_steps": ("local-steps", "local_steps", "steps"),
    "dataset_size": ("dataset-size", "dataset_size"),
    "mean": ("mean",),
    "std": ("std",),
    "shape": ("shape",),
}
"""Under which names apps put what we want to know into a configuration."""
_PAIR = ("mean", "std")


def describe_training(
    optimizer: torch.optim.Optimizer, loader: DataLoader[Any] | None = None, **known: Any
) -> ConfigRecord:
    """Return how a participant trains, as a record that it adds to its reply.

    That is `RecordDict({"arrays": ..., "metrics": ..., "training": describe_training(optimizer, loader)})`. A server
    that records with `leaktight.flower.record` then knows the settings from the objects that made the steps. Nothing of
    the examples is in it but their number, shape and normalisation. Strategies of Flower leave such a record alone.

    Args:
        optimizer: what takes the steps: its kind, learning rate, momentum and weight decay are read.
        loader: what yields the batches: their size, the size of the data set, and a `Normalize` among its transforms.
        known: what these do not say, as fields of `leaktight.captures.Known`: `local_steps`, `epochs`, `mean`, `std`.

    Example:
        >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(2))], lr=0.1)
        >>> dict(describe_training(optimizer, local_steps=1, mean=()))
        {'optimiser': 'sgd', 'learning-rate': 0.1, 'momentum': 0.0, 'weight-decay': 0.0, 'local-steps': 1, \
'mean': [], 'std': []}
    """
    seen = {**read_optimiser(optimizer), **({} if loader is None else read_loader(loader)), **known}
    fields = {name: value for name, value in Known(**seen) if value is not None and name in NAMES}
    return ConfigRecord(
        {
            name.replace("_", "-"): list(value) if isinstance(value, tuple) else value
            for name, value in sorted(fields.items(), key=lambda field: list(NAMES).index(field[0]))
        }
    )


def read_settings(*configs: Mapping[str, Any]) -> dict[str, Any]:
    """Return what configurations say of training, as fields of `Known`; the first that says something counts.

    A value that cannot be what it is called is left out: what is unknown stays unknown.

    Args:
        configs: those nearest to the steps first.

    Example:
        >>> read_settings({"lr": 0.05}, {"learning-rate": 0.1, "batch-size": "many", "optimizer": "SGD"})
        {'optimiser': 'sgd', 'learning_rate': 0.05}
    """
    settings: dict[str, Any] = {}
    for field, names in NAMES.items():
        values = (config[name] for config in configs for name in names if name in config)
        read = next((value for given in values if (value := _read(field, given)) is not None), None)
        if read is not None:
            settings[field] = read
    if not all(name in settings for name in _PAIR) or len(settings["mean"]) != len(settings["std"]):
        settings = {name: value for name, value in settings.items() if name not in _PAIR}
    return settings


def _read(field: str, given: object) -> Any:
    """Return a value as a field of `Known`; None if it cannot be one."""
    if isinstance(given, bool | bytes):
        return None
    # The one of the pair cannot be checked without the other.
    other = {"mean": "std", "std": "mean"}.get(field)
    twin = {other: (1.0,) * len(given)} if other and isinstance(given, list) else {}
    try:
        return getattr(Known(**{field: given, **twin}), field)
    except InvalidValue:
        return None
