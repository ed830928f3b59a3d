"""Training mode: what layers do only while a network is trained. Batch norm uses the batch, dropout drops.

Torch's own layers change their buffers in place and draw from the global generator. These take the same steps as
functions: masks come in by name, running statistics come out by name, and nothing is changed. So `torch.func` can map
and differentiate them, and a participant's masks come from its own random stream. Which layers are in training mode is
said in one place: `training` of each layer, as in every torch module.
"""

from __future__ import annotations

import dataclasses
from collections import Counter

from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd

from leaktight.core.errors import Refusal
from leaktight.core.message import Tensors

MEAN, VARIANCE = "running_mean", "running_var"


@dataclasses.dataclass(frozen=True)
class Dropped:
    """What one use of a dropout layer multiplies by: zero at a rate, else 1 / (1 - rate).

    Args:
        shape: the mask's shape for one example.
        rate: how likely an entry is dropped, in (0, 1).
    """

    shape: tuple[int, ...]
    rate: float

    def scale(self, kept: Tensor) -> Tensor:
        """Return the mask from what is kept, 1 or 0, or a share of it."""
        return kept / (1 - self.rate)


@dataclasses.dataclass
class TrainingPass:
    """One pass of a network in training mode: what it takes beside the inputs, and what it leaves.

    Args:
        masks: what dropout multiplies by, for each use of a layer, a row for each example. Without a mask it leaves
            things as they are, which is what it does on average.
        running: the running statistics by name; each is replaced by what it is after the pass. One that is not here is
            not followed.
        batch: filled with the mean and the unbiased variance of the batch, by the names of the running statistics.
        dropped: filled with what each use of a dropout layer drops, in order.
    """

    masks: Tensors = dataclasses.field(default_factory=dict)
    running: dict[str, Tensor] = dataclasses.field(default_factory=dict)
    batch: dict[str, Tensor] = dataclasses.field(default_factory=dict)
    dropped: dict[str, Dropped] = dataclasses.field(default_factory=dict)
    _uses: Counter[str] = dataclasses.field(default_factory=Counter)

    def use(self, layer: str) -> str:
        """Return the name of the next use of a layer: a layer may be used several times."""
        self._uses[layer] += 1
        return f"{layer}#{self._uses[layer]}"


class TrainingLayer(nn.Module):
    """A layer that does something else in training mode. The model tells it its name and the current pass."""

    def __init__(self) -> None:
        super().__init__()
        self.name = ""
        self.current: TrainingPass | None = None


class BatchNorm(TrainingLayer):
    r"""Batch norm whose running statistics are a result, not a side effect.

    In training mode a batch with n values in each channel is normalised by its own mean \(\mu\) and variance
    \(\sigma^2\), and the running statistics follow by the momentum m:

    .. math:: r \leftarrow (1 - m) \, r + m \mu, \qquad v \leftarrow (1 - m) \, v + m \, \sigma^2 \frac{n}{n - 1}.

    In evaluation mode the running statistics normalise.

    Args:
        like: torch's layer, whose parameters and buffers it takes over.

    Example:
        >>> import torch
        >>> BatchNorm(nn.BatchNorm2d(3))(torch.rand(2, 3, 4, 4)).mean((0, 2, 3)).abs().max() < 1e-6
        tensor(True)
    """

    def __init__(self, like: _BatchNorm) -> None:
        super().__init__()
        self.eps, self.momentum = like.eps, like.momentum if like.momentum is not None else 0.0
        self.weight: nn.Parameter | None
        self.bias: nn.Parameter | None
        self.register_parameter("weight", like.weight)
        self.register_parameter("bias", like.bias)
        self.running_mean: Tensor | None
        self.running_var: Tensor | None
        self.register_buffer(MEAN, like.running_mean)
        self.register_buffer(VARIANCE, like.running_var)
        self.train(like.training)

    @property
    def tracks(self) -> bool:
        """Whether it has running statistics."""
        return self.running_mean is not None

    def weights(self, steps: int) -> list[float]:
        """Return how much the batch of each of some steps counts in the running statistics after them.

        Example:
            >>> BatchNorm(nn.BatchNorm2d(3, momentum=0.5)).weights(2)
            [0.25, 0.5]
        """
        return [self.momentum * (1 - self.momentum) ** (steps - step) for step in range(1, steps + 1)]

    def forward(self, inputs: Tensor) -> Tensor:
        """Normalise each channel."""
        shape = (1, -1, *(1,) * (inputs.dim() - 2))
        if self.training or self.running_mean is None or self.running_var is None:
            places = [0, *range(2, inputs.dim())]
            mean = inputs.mean(places)
            centred = inputs - mean.view(shape)
            variance = centred.square().mean(places)
            self._follow(mean, variance, inputs.numel() // inputs.shape[1], len(inputs))
        else:
            centred, variance = inputs - self.running_mean.view(shape), self.running_var
        scale = (variance + self.eps).rsqrt()
        if self.weight is None or self.bias is None:
            return centred * scale.view(shape)
        return centred * (scale * self.weight).view(shape) + self.bias.view(shape)

    def _follow(self, mean: Tensor, variance: Tensor, values: int, examples: int) -> None:
        """Move the running statistics of the current pass, if it follows them."""
        if self.current is None or f"{self.name}.{MEAN}" not in self.current.running:
            return
        if values < 2:
            raise Refusal(
                f"Batch norm `{self.name}` cannot normalise a batch of {examples} by its own statistics where each "
                "channel has a single value. Use a batch size of at least 2, or `--batch-norm eval`."
            )
        statistics = {MEAN: mean, VARIANCE: variance * (values / (values - 1))}
        for part, batch in statistics.items():
            name = f"{self.name}.{part}"
            self.current.batch[name] = batch
            self.current.running[name] = (1 - self.momentum) * self.current.running[name] + self.momentum * batch

    def extra_repr(self) -> str:
        """Say what it normalises with."""
        return f"eps={self.eps}, momentum={self.momentum}"


class Dropout(TrainingLayer):
    """Dropout by masks that come from outside; without one, what dropout does on average: nothing.

    Args:
        like: torch's layer: of single entries, or of whole channels.

    Example:
        >>> import torch
        >>> Dropout(nn.Dropout(0.5))(torch.ones(3))
        tensor([1., 1., 1.])
    """

    def __init__(self, like: _DropoutNd) -> None:
        super().__init__()
        self.rate, self.channels = like.p, not isinstance(like, nn.Dropout)
        self.train(like.training)

    def forward(self, inputs: Tensor) -> Tensor:
        """Multiply by the mask, if the current pass has one for this use."""
        if not self.training or self.current is None:
            return inputs
        use = self.current.use(self.name)
        one = tuple(inputs.shape[1:])
        shape = (one[0], *(1,) * (len(one) - 1)) if self.channels else one
        self.current.dropped[use] = Dropped(shape, self.rate)
        mask = self.current.masks.get(use)
        return inputs if mask is None else inputs * mask

    def extra_repr(self) -> str:
        """Say how much it drops."""
        return f"rate={self.rate}"
