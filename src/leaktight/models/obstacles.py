"""Obstacles: everything about a module that keeps it from being audited, all at once, each with its fix."""

from __future__ import annotations

import copy
from collections import Counter

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from leaktight.core.errors import InvalidValue
from leaktight.core.training_mode import BatchNorm
from leaktight.models.head import head_faults
from leaktight.models.mode import BatchNormMode, mode_obstacles, quote, set_modes
from leaktight.models.output import describe_output, likely_part, pick_output
from leaktight.models.trial import Failure, attempt, changed_buffers, invert, outputs_of, trial_inputs


def obstacles(
    module: object,
    shape: tuple[int, ...],
    classes: int,
    head: str = "",
    batch_norm: BatchNormMode = "train",
    output: str = "",
) -> list[str]:
    """Return every obstacle to auditing a module, each a sentence and its fix; an empty list means there is none.

    Layers are looked at first. Then a copy runs on random examples in the mode that it is in, also differentiated twice
    under `vmap` as attacks do it: what fails there is an obstacle, and what works (batch norm and dropout in training
    mode, an activation in place, a weight shared by two layers) is none. Layers whose mode cannot be taken over are
    reported once, and the trial continues in evaluation mode, so that they do not hide what else is wrong.

    Args:
        module: what is to be audited; it is not changed.
        shape: the shape of one example.
        classes: how many outputs there must be.
        head: the name of the last linear layer; empty to find it.
        batch_norm: the mode of batch norm: `train` as the module has it, or `eval`.
        output: which part of what the module returns is the class scores; empty for all of it.

    Example:
        >>> obstacles(nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.Dropout(), nn.Linear(32, 10)), (1, 8, 8), 10)
        []
        >>> for obstacle in obstacles(nn.Sequential(nn.AlphaDropout(), nn.Linear(64, 10), nn.Softmax(1)), (64,), 10):
        ...     print(obstacle)
        Dropout `0` of class AlphaDropout is in training mode. Use `nn.Dropout`, or call `.eval()` on it.
        The linear layer `1` is not the last step. Return its output as it is: the loss applies softmax itself.
    """
    if not isinstance(module, nn.Module):
        return [f"It must be a torch.nn.Module. Got {type(module).__name__} instead; return the module itself."]
    modes, lazy = mode_obstacles(module, batch_norm), _lazy_layers(module)
    if lazy:
        return [*modes, f"Lazy layer {quote(lazy)} has no weights yet. Run the module once before you return it."]
    faults = list(modes)
    if not any(parameter.requires_grad for parameter in module.parameters()):
        faults.append("No parameter can be learned. Set `requires_grad` on those that are trained.")
    try:
        copied = attempt(lambda: set_modes(module, batch_norm))
    except Failure as failure:
        return [
            *faults,
            f"It cannot be copied: {failure}. Hold tensors as parameters or buffers, and nothing open or locked.",
        ]
    if output:
        pick_output(copied, output)
    if modes:
        copied.eval()
    else:
        faults += _mode_faults(copied, shape)
    return faults + _behaviour_faults(copied, shape, classes, head)


def require_none(
    what: str,
    module: object,
    shape: tuple[int, ...],
    classes: int,
    head: str = "",
    batch_norm: BatchNormMode = "train",
    output: str = "",
) -> nn.Module:
    """Return the module, or raise one `InvalidValue` that lists every obstacle; arguments as for `obstacles`."""
    faults = obstacles(module, shape, classes, head, batch_norm, output)
    if faults or not isinstance(module, nn.Module):
        raise InvalidValue("\n- ".join([f"{what} cannot be audited as it is:", *faults]))
    return module


def _lazy_layers(module: nn.Module) -> list[str]:
    tensors = [*module.named_parameters(), *module.named_buffers()]
    return list(dict.fromkeys(name.rpartition(".")[0] for name, tensor in tensors if is_lazy(tensor)))


def _behaviour_faults(module: nn.Module, shape: tuple[int, ...], classes: int, head: str = "") -> list[str]:
    """Run a module on random examples and return what goes wrong in its outputs, its head and its derivatives.

    Args:
        module: an initialised module, a copy that may be changed; its random draws do not touch the global generator.
        shape: the shape of one example.
        classes: how many outputs there must be.
        head: the name of the last linear layer; empty to find it.

    Example:
        >>> _behaviour_faults(nn.Linear(4, 3), (4,), classes=2)
        ['Its output must have the shape (n, 2). Got (3, 3) for n = 3 instead; change the last layer.']
    """
    inputs = trial_inputs(module, shape)
    try:
        outputs = outputs_of(module, inputs)
    except Failure as failure:
        return [f"It does not run on examples of shape {shape}: {failure}. Check the shape that it expects."]
    faults: list[str] = []
    if not isinstance(outputs, Tensor):
        part = likely_part(outputs, len(inputs), classes)
        faults.append(f"Its output must be one tensor. Got {describe_output(outputs, part)}")
        if not part:
            return faults
        # What else is wrong is said at once, too: the trial continues with that part.
        outputs = outputs_of(pick_output(module, part), inputs)
    wrong = _form(outputs, len(inputs), classes)
    faults += wrong + head_faults(module, inputs, head)
    if wrong or not isinstance(outputs, Tensor):
        return faults
    return faults + _neighbours(module, inputs, outputs) + _derivatives(module, inputs)


def _mode_faults(module: nn.Module, shape: tuple[int, ...]) -> list[str]:
    """Return what is different each time the module runs, in the mode it is in.

    Example:
        >>> class Noisy(nn.Linear):
        ...     def forward(self, inputs):
        ...         return super().forward(inputs + torch.randn_like(inputs))
        >>> _mode_faults(Noisy(4, 2), (4,))
        ['Its output is random. Use `nn.Dropout` to drop something, or take the random step out of `forward`.']
    """
    inputs = trial_inputs(module, shape)
    try:
        stirred = changed_buffers(module, inputs)
        first, second = (outputs_of(copy.deepcopy(module), inputs, seed) for seed in (1, 2))
    except Failure:
        # `_behaviour_faults` says why.
        return []
    faults = []
    if stirred:
        faults.append(
            f"Buffer {quote(stirred)} changes with every run. Call `.eval()`, or keep such state outside the module."
        )
    if (
        isinstance(first, Tensor)
        and isinstance(second, Tensor)
        and not torch.equal(first.nan_to_num(), second.nan_to_num())
    ):
        faults.append(
            "Its output is random. Use `nn.Dropout` to drop something, or take the random step out of `forward`."
        )
    return faults + _reused_norms(module, inputs)


def _reused_norms(module: nn.Module, inputs: Tensor) -> list[str]:
    """Find batch norms that one pass uses several times: their running statistics mix what should be apart."""
    calls: Counter[str] = Counter()
    handles = [
        layer.register_forward_hook(lambda _layer, _inputs, _output, name=name: calls.update([name]))
        for name, layer in module.named_modules()
        if isinstance(layer, BatchNorm)
    ]
    outputs_of(module, inputs)
    for handle in handles:
        handle.remove()
    return [
        f"Batch norm `{name}` is used {count} times in one pass. Give each use a layer of its own."
        for name, count in calls.items()
        if count > 1
    ]


def _form(outputs: object, count: int, classes: int) -> list[str]:
    if not isinstance(outputs, Tensor):
        return [f"Its output must be one tensor. Got {describe_output(outputs)}"]
    if tuple(outputs.shape) != (count, classes):
        got = f"Got {tuple(outputs.shape)} for n = {count} instead"
        return [f"Its output must have the shape (n, {classes}). {got}; change the last layer."]
    if not torch.isfinite(outputs).all():
        return ["Its output has NaN or infinite values. Check its initial weights and any division or logarithm."]
    return []


def _neighbours(module: nn.Module, inputs: Tensor, outputs: Tensor) -> list[str]:
    """Check that examples are left as they are and do not meet in the batch, but for batch norm in training mode."""
    faults = []
    given = inputs.clone()
    attempt(lambda: module(given))
    if not torch.equal(given, inputs):
        faults.append("It changes its input in place. Use `inplace=False` in its first layer.")
    norms = [layer for layer in module.modules() if isinstance(layer, BatchNorm)]
    if not all(layer.tracks for layer in norms):
        return faults
    if norms:
        module = copy.deepcopy(module).eval()
        everything = outputs_of(module, inputs)
        outputs = everything if isinstance(everything, Tensor) else outputs
    try:
        alone = outputs_of(module, inputs[:1])
    except Failure as failure:
        return [*faults, f"It does not run on a single example: {failure}. Avoid `squeeze()` and batch statistics."]
    wrong = _form(alone, 1, outputs.shape[1])
    if wrong or not isinstance(alone, Tensor):
        return [*faults, "Its output has another form for a single example. Avoid `squeeze()`."]
    if not torch.allclose(alone, outputs[:1], rtol=1e-3, atol=1e-5):
        faults.append(
            "Its output for one example depends on the others in the batch. Normalise within each example, as group "
            "norm does."
        )
    return faults


def _derivatives(module: nn.Module, inputs: Tensor) -> list[str]:
    """Differentiate twice under `vmap`, as every inversion does."""
    try:
        gradients, second = attempt(lambda: invert(module, inputs))
    except Failure as failure:
        return [
            f"It cannot be differentiated twice for several examples at once: {failure}. "
            f"{_advice(module, str(failure))}"
        ]
    if not all(torch.isfinite(tensor).all() for tensor in (*gradients.values(), second)):
        return [
            "Its gradients have NaN or infinite values. Check its initial weights and any root, division or logarithm."
        ]
    if not any(gradient.any() for gradient in gradients.values()):
        return ["Its parameters have no gradient. Take `torch.no_grad()` and `.detach()` out of `forward`."]
    return []


def _advice(module: nn.Module, failure: str) -> str:
    """Return the fix for the causes that are known."""
    recurrent = [name for name, layer in module.named_modules() if isinstance(layer, nn.RNNBase | nn.RNNCellBase)]
    if recurrent:
        return f"Write the recurrent layer {quote(recurrent)} out of linear layers, or use convolutions."
    if "scaled_dot_product" in failure:
        return "Run attention under `torch.nn.attention.sdpa_kernel(SDPBackend.MATH)`."
    return "Write the step that fails out of plain torch functions, without a branch that depends on the data."
