"""Data in the memory of a program: what `leaktight.audit_model` was given."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable
from typing import Literal

import torch
from torch import Tensor

from leaktight.core.in_memory import find
from leaktight.core.task import Batch
from leaktight.data.source import Constants, Data, Source

_TINY = 1e-6


class InMemory(Source):
    """Data that a program has as objects and gave to `leaktight.audit_model`; a plan file cannot name them.

    Args:
        name: what they are called there.

    Example:
        >>> print(InMemory(name="MNIST"))
        in_memory(name='MNIST')
    """

    kind: Literal["in_memory"] = "in_memory"
    name: str

    def read(self) -> Data:
        """Return them as they are."""
        data: Data = find(self.family, self.name, Data).content
        return data

    def stamp(self) -> Hashable:
        """Return the objects themselves: the same name may stand for others later."""
        return find(self.family, self.name, Data)


def keep_units(data: Data) -> Data:
    """Return data as metrics and attacks take them, with the constants that bring them back to what a network takes.

    So a network sees just what its owner hands over. Images outside of [0, 1] are brought into it, each channel by its
    smallest and largest value; columns of numbers to mean 0 and deviation 1 of the test rows, which are public.

    Args:
        data: with inputs in whatever units a network takes.

    Example:
        >>> batch = Batch(torch.tensor([[10.0, -1.0], [30.0, 1.0]]), torch.tensor([0, 1]))
        >>> table = keep_units(Data(batch, batch, 2))
        >>> table.train.inputs, table.constants
        (tensor([[-1., -1.],
                [ 1.,  1.]]), ((-2.0, 0.0), (0.1, 1.0)))
    """
    if data.constants is not None or not _is_floating(data):
        return data
    shift, scale = _range_of(data) if len(data.shape) == 3 else _spread_of(data)
    if not (shift.any() or (scale != 1).any()):
        return dataclasses.replace(data, constants=(tuple(shift.tolist()), tuple(scale.tolist())))
    trailing = (1,) * (len(data.shape) - 1)

    def change(batch: Batch) -> Batch:
        inputs = ((batch.inputs.double() - shift.view(-1, *trailing)) / scale.view(-1, *trailing)).float()
        return dataclasses.replace(batch, inputs=inputs.clamp(0, 1) if trailing else inputs)

    constants: Constants = tuple((0.0 - shift / scale).tolist()), tuple((1 / scale).tolist())
    return dataclasses.replace(data, train=change(data.train), test=change(data.test), constants=constants)


def _is_floating(data: Data) -> bool:
    """Return whether inputs are finite numbers of one shape; everything else is left to the check of the source."""
    parts = data.train.inputs, data.test.inputs
    return len(data.shape) in (1, 3) and all(
        part.is_floating_point() and part.shape[1:] == data.shape and len(part) > 0 and bool(part.isfinite().all())
        for part in parts
    )


def _range_of(data: Data) -> tuple[Tensor, Tensor]:
    """Return the smallest value of each channel, and how far the largest is from it; 0 and 1 for pixels in [0, 1]."""
    parts = [part.inputs.transpose(0, 1).flatten(1) for part in (data.train, data.test)]
    low = torch.stack([part.amin(1) for part in parts]).amin(0).double()
    high = torch.stack([part.amax(1) for part in parts]).amax(0).double()
    if low.min() >= 0 and high.max() <= 1:
        return torch.zeros_like(low), torch.ones_like(low)
    return low, torch.where(high - low > _TINY, high - low, torch.ones_like(low))


def _spread_of(data: Data) -> tuple[Tensor, Tensor]:
    """Return mean and deviation of each column over the test rows; 0 and 1 for a column of ids."""
    rows = data.test.inputs.double()
    mean, deviation = rows.mean(0), rows.std(0, correction=0)
    deviation = torch.where(deviation > _TINY, deviation, torch.ones_like(deviation))
    if data.columns is not None:
        ids = torch.tensor(data.columns.ids) > 0
        mean, deviation = mean.masked_fill(ids, 0), deviation.masked_fill(ids, 1)
    return mean, deviation
