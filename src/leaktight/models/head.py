"""The head of a module that was not written as body + head: the last linear layer is found, checked and taken off."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from leaktight.core.errors import did_you_mean
from leaktight.models.trial import Failure, attempt, outputs_of


def linear_layers(module: nn.Module) -> dict[str, nn.Linear]:
    """Return the linear layers of a module by name, in module order."""
    return {name: layer for name, layer in module.named_modules() if isinstance(layer, nn.Linear)}


def find_head(module: nn.Module, inputs: Tensor) -> str | None:
    """Return the name of the linear layer whose output is the module's output, or None if no layer is.

    The module runs once on the inputs. Of several such layers (one shared under two names) the last in module order
    counts.

    Args:
        module: any module; it is not changed.
        inputs: a small batch that it accepts.

    Example:
        >>> find_head(nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2)), torch.zeros(1, 4))
        '2'
    """
    seen: dict[str, Tensor] = {}

    def remember(name: str, layer: nn.Module) -> torch.utils.hooks.RemovableHandle:
        return layer.register_forward_hook(lambda _layer, _inputs, output: seen.update({name: output.clone()}))

    handles = [remember(name, layer) for name, layer in linear_layers(module).items()]
    try:
        outputs = outputs_of(module, inputs)
    finally:
        for handle in handles:
            handle.remove()
    same = [name for name in linear_layers(module) if name in seen and _equal(seen[name], outputs)]
    return same[-1] if same else None


def split(module: nn.Module, head: str) -> tuple[nn.Module, nn.Module]:
    """Return a copy of a module without its head, and the head's copy; the module itself stays as it is.

    Parameters that do not require a gradient become buffers of the copy: they are not learned, so they must not be
    shared.

    Args:
        module: any module that ends in a linear layer.
        head: that layer's name; the empty name means that the module is the layer itself.

    Example:
        >>> body, head = split(nn.Sequential(nn.Flatten(), nn.Linear(4, 2)), "1")
        >>> body, head
        (Sequential(
          (0): Flatten(start_dim=1, end_dim=-1)
          (1): Identity()
        ), Linear(in_features=4, out_features=2, bias=True))
    """
    body = copy.deepcopy(module)
    for layer in body.modules():
        for name, parameter in list(layer.named_parameters(recurse=False)):
            if not parameter.requires_grad:
                delattr(layer, name)
                layer.register_buffer(name, parameter.detach())
    if not head:
        return nn.Identity(), body
    last = body.get_submodule(head)
    body.set_submodule(head, nn.Identity())
    return body, last


def head_faults(module: nn.Module, inputs: Tensor, head: str = "") -> list[str]:
    """Return what is wrong with the last linear layer of a module, each with its fix.

    Args:
        module: a module that runs on the inputs.
        inputs: a small batch.
        head: the layer's name; empty to find it.

    Example:
        >>> head_faults(nn.Sequential(nn.Linear(4, 2), nn.Softmax(1)), torch.zeros(1, 4))
        ['The linear layer `0` is not the last step. Return its output as it is: the loss applies softmax itself.']
    """
    layers = linear_layers(module)
    if not layers:
        return ["It has no linear layer. End it in `nn.Linear(features, classes)`."]
    if head and head not in layers:
        return [f"It has no linear layer named `{head}`. {did_you_mean(head, layers)}"]
    last = find_head(module, inputs)
    name = head or (list(layers)[-1] if last is None else last)
    if last is None or layers[name] is not layers[last]:
        return [
            f"The linear layer `{name}` is not the last step. Return its output as it is: the loss applies "
            "softmax itself."
        ]
    if not layers[name].weight.requires_grad:
        return [f"The last linear layer `{name}` is frozen. Set `requires_grad` on its weights."]
    own = {id(parameter) for parameter in layers[name].parameters()}
    names = [other for other, parameter in module.named_parameters(remove_duplicate=False) if id(parameter) in own]
    if len(names) > len(own):
        return [f"The last linear layer `{name}` shares its weights with another layer. Give it weights of its own."]
    return _check_reassembly(module, inputs, name)


def _check_reassembly(module: nn.Module, inputs: Tensor, name: str) -> list[str]:
    """Check that head(body(x)) = module(x)."""
    use = f"The last linear layer `{name}` must be used once, by calling it"
    body, last = split(module, name)
    try:
        features = outputs_of(body, inputs)
        parts = attempt(lambda: last(features))
    except Failure as failure:
        return [f"{use}. Without it `forward` fails: {failure}."]
    whole = outputs_of(module, inputs)
    return [] if _close(whole, parts) else [f"{use}. Call it at the end of `forward` only."]


def _equal(one: Tensor, other: object) -> bool:
    return isinstance(other, Tensor) and one.shape == other.shape and torch.equal(one, other)


def _close(one: object, other: object) -> bool:
    if not (isinstance(one, Tensor) and isinstance(other, Tensor) and one.shape == other.shape):
        return False
    return torch.allclose(one, other, rtol=1e-4, atol=1e-6)
