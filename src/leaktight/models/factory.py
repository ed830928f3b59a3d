"""A person's own network, by the name of the function that makes it."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Literal

from pydantic import Field
from torch import nn

from leaktight.core.errors import InvalidValue
from leaktight.core.factory import Reference, call_object
from leaktight.data.columns import Columns
from leaktight.data.files import Location
from leaktight.models.head import find_head, split
from leaktight.models.mode import BatchNormMode, set_modes
from leaktight.models.network import Network, weightless
from leaktight.models.obstacles import require_none
from leaktight.models.output import pick_output
from leaktight.models.trial import trial_inputs
from leaktight.models.weights import load_state, read_weights


class Factory(Network):
    """Any `nn.Module` that ends in a linear layer, as body (all before that layer) + head (that layer).

    The function is called with `shape` and `classes` if it names them, and its random draws follow from the audit's
    seed. The module is then tried out; everything that keeps it from being audited is reported at once, with the fix.

    It is trained in the mode in which the function returns it. Batch norm in training mode normalises by the batch, and
    its running statistics go out along with every message; dropout drops by a draw of the participant's own. Only
    parameters that require a gradient are trained and sent.

    Args:
        function: `package.module:function`, or the module's class in place of a function; the current folder is
            searched first.
        head: the name of the last linear layer, such as `classifier.2`; empty to find it.
        batch_norm: `train` takes batch norm in the mode that it is in; `eval` puts it in evaluation mode, where it
            normalises by its running statistics and nothing of the batch goes out with them.
        output: which part of what the module returns is the class scores: a key of a dictionary, or a place in a tuple,
            from 0; empty if it returns nothing else.
        weights: a state dict in a safetensors file, loaded in place of the initial weights; empty for none.

    Example:
        >>> network = Factory(function="leaktight.models.factory:example")
        >>> network.build((1, 8, 8), classes=10, seed=0).head
        Linear(in_features=16, out_features=10, bias=True)
    """

    kind: Literal["factory"] = "factory"
    function: Reference
    head: str = ""
    batch_norm: BatchNormMode = "train"
    output: str = Field("", exclude_if=lambda output: not output)
    weights: Location = Field("", exclude_if=lambda weights: not weights)

    def parts(self, shape: tuple[int, ...], classes: int) -> tuple[nn.Module, nn.Module]:
        """Call the function, load the weights, and take its module apart."""
        module = call_object(self.function, shape=shape, classes=classes)
        if self.weights and isinstance(module, nn.Module):
            file = Path(self.weights).expanduser()
            load_state(module, read_weights(file), f"The file `{file.name}`")
        what = f"The model of `{self.function}`"
        return _take_apart(what, module, shape, classes, self.head, self.batch_norm, self.output)

    def size(self, inputs: Columns | tuple[int, ...], classes: int) -> int | None:
        """Call the function on the meta device; None if it needs real tensors."""
        shape = (len(inputs),) if isinstance(inputs, Columns) else inputs
        try:
            with weightless(), warnings.catch_warnings():
                # Such as weights that are loaded from a file and have no place there.
                warnings.simplefilter("ignore")
                module = call_object(self.function, shape=shape, classes=classes)
        except InvalidValue:
            return None
        return sum(parameter.numel() for parameter in module.parameters()) if isinstance(module, nn.Module) else None


def wrap(
    module: nn.Module,
    shape: tuple[int, ...],
    classes: int,
    head: str | None = None,
    batch_norm: BatchNormMode = "train",
    output: str = "",
) -> tuple[nn.Module, nn.Module]:
    """Return body and head of a module that is at hand: head(body(x)) = module(x). The module itself is not changed.

    Args:
        module: any module that ends in a linear layer.
        shape: the shape of one example.
        classes: how many classes there are.
        head: the name of the last linear layer; None to find it.
        batch_norm: as in `Factory`.
        output: as in `Factory`.

    Raises:
        InvalidValue: the module cannot be audited; the text lists every obstacle with its fix.

    Example:
        >>> body, head = wrap(nn.Sequential(nn.Flatten(), nn.Linear(64, 10)), (1, 8, 8), 10)
        >>> head
        Linear(in_features=64, out_features=10, bias=True)
    """
    return _take_apart("This model", module, shape, classes, head or "", batch_norm, output)


def example(shape: tuple[int, ...], classes: int) -> nn.Module:
    """Return a small convolutional network, as a person might write one."""
    return nn.Sequential(
        nn.Conv2d(shape[0], 16, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, classes)
    )


def _take_apart(
    what: str,
    module: object,
    shape: tuple[int, ...],
    classes: int,
    head: str,
    batch_norm: BatchNormMode,
    output: str,
) -> tuple[nn.Module, nn.Module]:
    sound = set_modes(require_none(what, module, shape, classes, head, batch_norm, output), batch_norm)
    if output:
        pick_output(sound, output)
    return split(sound, head or find_head(sound, trial_inputs(sound, shape)) or "")
