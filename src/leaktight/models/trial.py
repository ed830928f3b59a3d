"""Trials: a module is run the way training and attacks will run it, and what happens is reported."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from leaktight.core.factory import reason_of
from leaktight.core.message import Tensors
from leaktight.core.random import global_seed, stream

Result = TypeVar("Result")


class Failure(Exception):
    """What a module's own code raised, as text."""


def attempt(run: Callable[[], Result]) -> Result:
    """Run someone else's code, with random draws of its own, and turn whatever it raises into a `Failure`."""
    try:
        with global_seed(0), warnings.catch_warnings():
            # A layer without a batching rule is slow and still right.
            warnings.filterwarnings("ignore", message="There is a performance drop")
            return run()
    # A module's forward is a person's own code and may fail in any way; the reason goes into the list for its author.
    except Exception as error:
        raise Failure(reason_of(error)) from error


def trial_inputs(module: nn.Module, shape: tuple[int, ...]) -> Tensor:
    """Return three different examples of this shape, in [0, 1], where the module lives."""
    device = next((parameter.device for parameter in module.parameters()), torch.device("cpu"))
    return torch.rand(3, *shape, generator=stream(0, "trial")).to(device)


def outputs_of(module: nn.Module, inputs: Tensor, seed: int = 0) -> object:
    """Return what a module makes of a copy of the inputs, without a graph; its random draws follow from the seed."""

    def run() -> object:
        with global_seed(seed), torch.no_grad():
            return module(inputs.clone())

    return attempt(run)


def invert(module: nn.Module, inputs: Tensor) -> tuple[Tensors, Tensor]:
    """Do what a batched inversion does, for several examples at once, each a victim of its own.

    Each victim's gradient g(x) of the parameters is taken for label 0, and then the gradient of ||g(x)||^2 with respect
    to x, all under one `vmap`.

    Args:
        module: a module with outputs of shape (n, classes).
        inputs: one example for each victim.

    Returns:
        The parameters' gradients, one for each victim, and the gradients with respect to the inputs.

    Example:
        >>> gradients, second = invert(nn.Linear(4, 2), torch.ones(3, 4))
        >>> gradients["weight"].shape, second.shape
        (torch.Size([3, 2, 4]), torch.Size([3, 4]))
    """
    parameters = {name: parameter.detach() for name, parameter in module.named_parameters()}

    def loss(parameters: Tensors, example: Tensor) -> Tensor:
        outputs = functional_call(module, dict(parameters), (example.unsqueeze(0),))
        return F.cross_entropy(outputs, torch.zeros(1, dtype=torch.long, device=example.device))

    def energy(example: Tensor) -> tuple[Tensor, Tensors]:
        gradients = grad(loss)(parameters, example)
        return torch.stack([gradient.square().sum() for gradient in gradients.values()]).sum(), gradients

    second, gradients = vmap(grad(energy, has_aux=True))(inputs)
    return gradients, second


def changed_buffers(module: nn.Module, inputs: Tensor) -> list[str]:
    """Return the buffers that one run changes; the module itself stays as it is."""
    copied = copy.deepcopy(module)
    before = {name: buffer.clone() for name, buffer in copied.named_buffers()}
    outputs_of(copied, inputs)
    return [name for name, buffer in copied.named_buffers() if name in before and not torch.equal(buffer, before[name])]
