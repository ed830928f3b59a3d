"""Gradients at the layers before the cut, one for each example.

A feature party computes them from the gradient at the cut.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.func import functional_call

from leaktight.core.message import Tensors


def layer_gradients(bottom: nn.Module, parameters: Tensors, inputs: Tensor, gradient: Tensor) -> dict[str, Tensor]:
    r"""Return the gradient of each example's loss with respect to each bottom layer's output, by the layer's name.

    The bottom is a sequence of layers \(f = f_k \circ \dots \circ f_1\) that treats each example by itself. With
    \(a_l\) the output of layer l and \(g\) what came from the label party,

    .. math:: g_l = \left(\frac{\partial f_k \circ \dots \circ f_{l+1}}{\partial a_l}\right)^T g, \qquad g_k = g,

    row by row, in one backward pass. Nothing is used that the feature party does not have. A layer whose output no
    parameter has a part in (flattening or standardising the inputs) is left out.

    Args:
        bottom: the feature party's layers; its own parameters are not used and not changed.
        parameters: their values at the step, by the bottom's names.
        inputs: the rows of the batch.
        gradient: the gradient at the cut, a row for each example, as it came in.

    Returns:
        From the first layer to the last; the last is the cut, and its gradient is the one that came in.

    Example:
        >>> bottom = nn.Sequential(nn.Linear(3, 2), nn.ReLU())
        >>> values = {name: value.detach() for name, value in bottom.named_parameters()}
        >>> found = layer_gradients(bottom, values, torch.ones(4, 3), torch.ones(4, 2))
        >>> {name: tuple(each.shape) for name, each in found.items()}
        {'0': (4, 2), '1': (4, 2)}
    """
    layers = dict(bottom.named_children()) if isinstance(bottom, nn.Sequential) else {"": bottom}
    outputs: dict[str, Tensor] = {}
    output = inputs.detach()
    with torch.enable_grad():
        for name, layer in layers.items():
            prefix = f"{name}." if name else ""
            own = {
                other.removeprefix(prefix): value.detach().requires_grad_(True)
                for other, value in parameters.items()
                if other.startswith(prefix)
            }
            output = functional_call(layer, own, (output,)) if own else layer(output)
            if output.requires_grad:
                outputs[name or "cut"] = output
    gradients = torch.autograd.grad(output, list(outputs.values()), gradient.to(output))
    return dict(zip(outputs, (rows.detach() for rows in gradients), strict=True))
