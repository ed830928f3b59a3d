"""Layer outputs: what each layer with weights hands on, after its activation function."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from leaktight.core.message import Tensors
from leaktight.core.task import Task

ACTIVATIONS = (
    nn.CELU,
    nn.ELU,
    nn.GELU,
    nn.Hardsigmoid,
    nn.Hardswish,
    nn.Hardtanh,
    nn.LeakyReLU,
    nn.LogSigmoid,
    nn.Mish,
    nn.PReLU,
    nn.ReLU,
    nn.ReLU6,
    nn.SELU,
    nn.SiLU,
    nn.Sigmoid,
    nn.Softplus,
    nn.Softsign,
    nn.Tanh,
)


class LayerOutputs:
    """A copy of a task's model that returns what its layers hand on.

    A layer is a module with parameters of its own that go out. Its output is taken after the activation function if a
    module of `ACTIVATIONS` gets that very output, else as it is: a function that is called inside a `forward` is not
    seen. A module that is called several times counts by its last call, one that is never called has no output.

    Args:
        task: whose model.
        parameters: every parameter, by the model's names.

    Example:
        >>> from leaktight.testing import toy_batch, toy_task
        >>> task = toy_task()
        >>> found = LayerOutputs(task, task.model.tensors())(toy_batch(5).inputs)
        >>> {layer: tuple(rows.shape) for layer, rows in found.items()}
        {'body.1': (5, 16), 'head': (5, 4)}
        >>> bool(found["body.1"].abs().max() <= 1)  # after the tanh
        True
    """

    def __init__(self, task: Task, parameters: Tensors) -> None:
        self._task, self._parameters = task.copy(), parameters
        self._layers = task.layers()
        self._found: dict[str, Tensor] = {}
        for layer, names in self._layers.items():
            for path in dict.fromkeys(name.rpartition(".")[0] for name in names):
                self._task.model.get_submodule(path).register_forward_hook(self._remember(layer))
        for module in self._task.model.modules():
            if isinstance(module, ACTIVATIONS):
                module.register_forward_hook(self._replace)

    def __call__(self, inputs: Tensor) -> dict[str, Tensor]:
        """Return each layer's output for some inputs, a row for each, in the order of the model."""
        self._found.clear()
        with torch.no_grad():
            self._task.forward(self._parameters, inputs)
        outputs = {layer: self._found[layer].reshape(len(inputs), -1) for layer in self._layers if layer in self._found}
        self._found.clear()
        return outputs

    def _remember(self, layer: str) -> Any:
        def hook(module: nn.Module, given: tuple[Any, ...], output: Any) -> None:
            if isinstance(output, Tensor):
                self._found[layer] = output

        return hook

    def _replace(self, module: nn.Module, given: tuple[Any, ...], output: Tensor) -> None:
        for layer, before in self._found.items():
            if given and given[0] is before:
                self._found[layer] = output
