"""A linear layer with bias as an attacker sees it: what it computes, and its shared gradient."""

from __future__ import annotations

import dataclasses

import torch
from torch import Tensor, nn

from leaktight.core.message import Tensors
from leaktight.core.task import Task


@dataclasses.dataclass(frozen=True)
class LinearLayer:
    r"""A layer z = W x + b of a known network, with the network behind it.

    What it saw of an example is kept as \(y = (x, 1)\), so that z = V y with \(V = [W | b]\), and the gradient of a
    mean loss is

    .. math:: M = [dL/dW \,|\, dL/db] = \sum_i c_i \, \delta_i y_i^T ,

    where \(\delta_i\) is the gradient of one example's loss at z and \(c_i\) its weight in the mean.

    Args:
        name: by the model's name.
        weight: V, (units, width + 1), in double precision.
        task: the public task.
        parameters: what the sender was sent, by the model's names.
        low: the smallest value of each entry of x, (width,); None if there is no such bound.
        high: the largest.
    """

    name: str
    weight: Tensor
    task: Task = dataclasses.field(repr=False)
    parameters: Tensors = dataclasses.field(repr=False)
    low: Tensor | None = None
    high: Tensor | None = None

    @classmethod
    def of(cls, task: Task, parameters: Tensors, name: str, box: tuple[Tensor, Tensor] | None = None) -> LinearLayer:
        """Return a layer of a task's model, with these public parameters, by wire name."""
        named = task.model_parameters(parameters)
        weight = augment(named[f"{name}.weight"], named[f"{name}.bias"])
        low, high = (None, None) if box is None else (part.cpu().double() for part in box)
        return cls(name, weight, task, named, low, high)

    def is_rectified(self, seen: Tensor) -> bool:
        """Return whether the network behind sees nothing of a negative z, as behind a ReLU.

        Args:
            seen: some vectors y that the layer may see, (examples, width + 1).
        """
        z = self._activations(seen)
        # Typical examples may have no negative z at all; shifted ones have.
        shifted = torch.cat([z, z - z.mean(), -z])
        with torch.no_grad():
            plain, cut = (_flat(self._outputs(each)) for each in (shifted, shifted.clamp(min=0)))
        return torch.equal(plain, cut)

    def slopes(self, seen: Tensor) -> Tensor:
        """Return the gradient of the public loss at z for each possible label, (examples, classes, units).

        Args:
            seen: what the layer sees of each example, y, (examples, width + 1).
        """
        slopes = []
        with torch.enable_grad():
            z = self._activations(seen).requires_grad_()
            outputs = self._outputs(z)
            for label in range(self.task.classes):
                labels = torch.full((len(seen),), label, device=z.device)
                slopes.append(torch.autograd.grad(self.task.loss(outputs, labels).sum(), z, retain_graph=True)[0])
        return torch.stack(slopes, 1).cpu().double()

    def outside(self, seen: Tensor) -> Tensor:
        """Return how far each example lies outside the box of valid ones, at its worst entry; 0 where there is no box.

        Args:
            seen: y, (examples, width + 1).
        """
        if self.low is None or self.high is None:
            return seen.new_zeros(len(seen))
        inputs, range_ = seen[:, :-1], self.high - self.low
        return (torch.maximum(self.low - inputs, inputs - self.high) / range_).amax(1).clamp(min=0)

    def outputs(self, seen: Tensor) -> object:
        """Run the network from this layer on, for what it sees, y, (examples, width + 1)."""
        return self._outputs(self._activations(seen))

    def _activations(self, seen: Tensor) -> Tensor:
        return (seen @ self.weight.T).float().to(self.task.device)

    def _outputs(self, z: Tensor) -> object:
        """Run the network from z on: the layer's own answer to a blank example is replaced."""
        blank = torch.zeros(1, *self.task.shape, device=z.device)
        hook = self.task.model.get_submodule(self.name).register_forward_hook(lambda module, given, answer: z)
        try:
            return self.task.forward(self.parameters, blank)
        finally:
            hook.remove()


def _flat(outputs: object) -> Tensor:
    """Return all numbers among a network's outputs: those of a network with two heads come as a pair."""
    parts = outputs if isinstance(outputs, tuple) else (outputs,)
    return torch.cat([part.flatten() for part in parts if isinstance(part, Tensor)])


def augment(weight: Tensor, bias: Tensor) -> Tensor:
    """Return [W | b] in double precision, on the CPU; what is not finite counts as zero.

    Example:
        >>> augment(torch.ones(2, 1), torch.tensor([3.0, torch.nan]))
        tensor([[1., 3.],
                [1., 0.]], dtype=torch.float64)
    """
    return torch.cat([weight, bias[:, None]], 1).detach().cpu().double().nan_to_num(0.0, 0.0, 0.0)


def first_linear_of_inputs(model: nn.Module, width: int) -> str | None:
    """Return the layer that sees the flattened inputs; None if another comes first, or it has no bias."""
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear):
            return name if module.bias is not None and module.in_features == width else None
        if isinstance(module, nn.Conv2d | nn.Conv1d):
            return None
    return None
