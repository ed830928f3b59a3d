"""Gradient features: a few hundred numbers for each layer of a gradient, from which a classifier can learn."""

from __future__ import annotations

import math
from collections import defaultdict

import torch
from torch import Tensor

from leaktight.core.message import Tensors, layer_of
from leaktight.core.random import stream

LARGE = 5000
"""How many pairs of input and output a weight may have before it is pooled or dropped."""


def pool_layers(tensors: Tensors) -> dict[str, Tensor]:
    r"""Return for each layer a row of features for each message.

    Of absolute values \(|g|\), with o output units, i inputs and kernel positions k:

    - a convolution kernel gives \(\max_k |g_{oik}|\), and is dropped if \(o \cdot i > 5000\);
    - a dense matrix gives all \(|g_{oi}|\), or \(\max_o |g_{oi}|\) if \(o \cdot i > 5000\);
    - a vector or a single number (the weight of a normalisation) is taken as it is, and a bias is dropped.

    A layer of which nothing would be left keeps what is largest for each input, \(\max_{o,k} |g_{oik}|\), or its bias
    if it has sent no more than that, so that every layer that sent something has a feature. All layers together are the
    concatenation.

    Args:
        tensors: gradients or updates by wire name, messages along the first dimension; what was withheld is not there.

    Returns:
        By layer, in the order of the tensors, rows of the same order as the messages.

    Example:
        >>> gradients = {"conv.weight": torch.randn(2, 8, 3, 5, 5), "conv.bias": torch.randn(2, 8)}
        >>> gradients |= {"head.weight": torch.randn(2, 10, 600)}
        >>> {layer: tuple(rows.shape) for layer, rows in pool_layers(gradients).items()}
        {'conv': (2, 24), 'head': (2, 600)}

    Differs from the paper: There large kernels are dropped even if their layer is the only one attacked, which leaves
    no feature. It has no normalisation layers.

    References:
        Melis et al., Exploiting Unintended Feature Leakage in Collaborative Learning, 2019; the pooling is that of its
        published code.
    """
    features: dict[str, Tensor] = {}
    for layer, parts in _layers(tensors).items():
        rows_of_parts = [rows for part in parts if (rows := _pool_tensor(part)) is not None]
        features[layer] = torch.cat(rows_of_parts or [_largest(part) for part in parts], dim=1)
    return features


def pick_entries(tensors: Tensors, count: int, seed: int) -> dict[str, Tensor]:
    """Return for each layer the absolute values of some of its entries, always the same ones; all if there are fewer.

    Args:
        tensors: gradients or updates by wire name, messages along the first dimension.
        count: how many entries of each layer, at least 1; more is stronger. Biases are left out.
        seed: what the choice derives from, together with the layer's name.

    Example:
        >>> gradients = {"one.weight": torch.randn(2, 10, 6), "two.weight": torch.randn(2, 3)}
        >>> {layer: tuple(rows.shape) for layer, rows in pick_entries(gradients, 48, seed=0).items()}
        {'one': (2, 48), 'two': (2, 3)}

    References:
        Mo et al., Layer-wise Characterization of Latent Information Leakage in Federated Learning, 2021, Fig. 6 (48
        entries).
    """
    features: dict[str, Tensor] = {}
    for layer, parts in _layers(tensors).items():
        rows = torch.cat([part.flatten(1) for part in parts], dim=1)
        chosen = torch.randperm(rows.shape[1], generator=stream(seed, "entries", layer))[:count]
        features[layer] = rows[:, chosen.to(rows.device)].abs()
    return features


def _layers(tensors: Tensors) -> dict[str, list[Tensor]]:
    """Return what each layer sent, messages first, with at least two dimensions; a bias only if nothing else came."""
    weights: dict[str, list[Tensor]] = defaultdict(list)
    biases: dict[str, list[Tensor]] = defaultdict(list)
    for name, tensor in tensors.items():
        last = name.rpartition(".")[2]
        (biases if last.startswith("bias") else weights)[layer_of(name)].append(
            tensor if tensor.dim() > 1 else tensor[:, None]
        )
    order = dict.fromkeys(layer_of(name) for name in tensors)
    return {layer: weights.get(layer) or biases[layer] for layer in order}


def _pool_tensor(part: Tensor) -> Tensor | None:
    """Return the features of one tensor; None for a kernel that is too large."""
    sizes = part.shape[1:]
    large = math.prod(sizes[:2]) > LARGE
    if len(sizes) > 2:
        return None if large else part.abs().flatten(3).amax(3).flatten(1)
    return part.abs().amax(1) if len(sizes) == 2 and large else part.abs().flatten(1)


def _largest(part: Tensor) -> Tensor:
    """Return what is largest for each input."""
    return part.abs().flatten(3).amax((1, 3))
