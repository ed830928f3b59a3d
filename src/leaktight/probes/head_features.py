"""Head features: how well what the head saw of a single example can be read off its gradient."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

import torch
from torch import Tensor

from leaktight.attacks.replay import features_of
from leaktight.core.message import Kind, Tensors
from leaktight.core.metric import Quantity, Reading
from leaktight.core.probe import Finding, Probe
from leaktight.core.random import Stream, stream
from leaktight.core.run import Run
from leaktight.metrics.image import rmse_relative
from leaktight.statistics.interval import bootstrap


def features_by_head(weight: Tensor, bias: Tensor) -> Tensor:
    r"""Return what a linear head saw of one example, from the gradients of its weight and bias, under any loss.

    .. math:: x = \frac{\sum_c \delta_c G_c}{\sum_c \delta_c^2}

    Example:
        >>> delta, seen = torch.tensor([0.5, -0.5]), torch.tensor([1.0, 2.0, 3.0])
        >>> features_by_head(delta[:, None] * seen, delta)
        tensor([1., 2., 3.])
    """
    return bias @ weight / bias.square().sum().clamp_min(torch.finfo(bias.dtype).tiny)


class HeadFeatures(Probe):
    """Read the features of single examples off the gradient of a public head, and compare them with the true ones.

    It needs no search, and a private loss on the body leaves it as it is. The reading is the error relative to the size
    of the features: 0 is exact, 1 is no better than naming zeros. Messages of several examples or steps, and those
    whose head is not one linear layer with bias that was sent, are left out.

    Example:
        >>> from leaktight.core.random import stream
        >>> from leaktight.testing import toy_run
        >>> [reading] = HeadFeatures().read(toy_run(batch_size=1), stream(0, "head")).readings
        >>> reading.value < 1e-4
        True
    """

    kind: Literal["head_features"] = "head_features"
    title: ClassVar[str] = "error of features read off the head"

    @classmethod
    def quantities(cls) -> Mapping[str, Quantity]:
        """Return what it reads."""
        return {"head_features": Quantity(cls.title, leaks="low")}

    def read(self, run: Run, rng: Stream) -> Finding:
        """Read every message of one gradient of one example."""
        handed = {
            (message.receiver, message.round): message.tensors
            for message in run.transcript
            if message.kind is Kind.PARAMETERS
        }
        errors = [
            _error(run, handed[key], truth.sent.tensors, truth.raw.inputs)
            for key, truth in run.truths.items()
            if truth.sent.kind is Kind.GRADIENT and len(truth.raw) == 1 and key in handed
        ]
        each = [error for error in errors if error is not None]
        if not each:
            return Finding(())
        values = torch.tensor(each, dtype=torch.float64)
        low, high = bootstrap(values, stream(rng.initial_seed(), "interval", self.kind))
        return Finding(
            (
                Reading(
                    name=self.kind,
                    value=float(values.mean()),
                    low=low,
                    high=high,
                    n=len(each),
                    chance=1.0,
                    leaks="low",
                    against="raw",
                    each=tuple(each),
                ),
            )
        )


def _error(run: Run, parameters: Tensors, sent: Tensors, inputs: Tensor) -> float | None:
    weight, bias = sent.get("head.weight"), sent.get("head.bias")
    if weight is None or bias is None:
        return None
    with torch.no_grad():
        seen = features_of(run.public, run.public.model_parameters(parameters), inputs).flatten(1)
    if weight.dim() != 2 or seen.shape[1] != weight.shape[1]:
        return None
    return float(rmse_relative(features_by_head(weight, bias)[None], seen))
