"""Class gradients: how long the cut gradients of each class are, and which way they point."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from leaktight.core.errors import Refusal
from leaktight.core.message import Kind
from leaktight.core.metric import Reading
from leaktight.core.probe import Finding, Probe
from leaktight.core.random import Stream
from leaktight.core.run import GroundTruth, Run

SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)
CLASSES = ("negative", "positive")
MEASURES = ("norm", "cosine", "error", "slope")


class ClassGradients(Probe):
    r"""Describe the gradients that a label party sent in each step, class by class, by quantiles over examples.

    For row \(g_i\) of a batch of n, `norm` is \(n \|g_i\|\), the length of the gradient of the example's own loss, and
    `cosine` that of \(g_i\) with the mean gradient of the positives of its step. The norm of what was computed, before
    any protection, has two factors. With loss \(L_i = -\log p_i\), \(p_i\) the probability of the true one of two
    classes, and h the difference of the two scores, \(\nabla L_i = \pm (1 - p_i) \nabla h\): `error` is
    \(1 - p_i = 1 - e^{-L_i}\), `slope` is \(\|\nabla h\|\). Readings are named `norm_positive_q50`,
    `cosine_negative_q5` and so on; the value is the median over steps, `each` has every step in order. A step without
    an example of a class has no readings of it, so that all steps are left out in which a class is missing.

    No attack can read this: it takes the labels. It shows what attacks live on.

    Example:
        >>> print(ClassGradients())
        class_gradients

    Differs from the paper: It shows histograms.

    References:
        Li et al., Label Leakage and Protection in Two-party Split Learning, 2021, Fig. 1a to 1d.
    """

    kind: Literal["class_gradients"] = "class_gradients"

    def read(self, run: Run, rng: Stream) -> Finding:
        """Read both classes of every cut gradient."""
        cut = [message for message in run.transcript if message.kind is Kind.CUT_GRADIENT]
        sent = [run.truths[message.key] for message in cut if message.key in run.truths]
        steps = [quantiles for ground_truth in sent if (quantiles := class_quantiles(ground_truth)) is not None]
        if not steps:
            raise Refusal(f"{self.kind} needs a cut gradient of a batch with both classes. The run holds none.")
        every = torch.stack(steps)
        names = [f"{measure}_{label}_q{share * 100:g}" for measure in MEASURES for label in CLASSES for share in SHARES]
        return Finding(
            tuple(
                Reading(name=name, value=values.median().item(), n=len(values), each=tuple(values.tolist()))
                for name, values in zip(names, every.T, strict=True)
            )
        )


def class_quantiles(ground_truth: GroundTruth) -> Tensor | None:
    """Return the quantiles of one step: by measure, then by class, then by share; None if a class is missing."""
    [tensor] = ground_truth.sent.tensors.values()
    rows, positive = tensor.flatten(1).double().cpu(), (ground_truth.raw.labels == 1).cpu()
    if positive.all() or not positive.any():
        return None
    mean = rows[positive].mean(0)
    tiny = torch.finfo(rows.dtype).tiny
    norms = rows.norm(dim=1)
    cosines = (rows @ mean) / (norms * mean.norm()).clamp_min(tiny)
    error = -torch.expm1(-_losses(ground_truth))
    clean = next(iter(ground_truth.clean.tensors.values())).flatten(1).double().cpu().norm(dim=1)
    slopes = clean * len(rows) / error.clamp_min(tiny)
    shares = torch.tensor(SHARES, dtype=rows.dtype)
    every = torch.ones_like(positive)
    return torch.cat(
        [
            _quantiles(values[of_class], shares)
            for values, known in ((norms * len(rows), every), (cosines, every), (error, every), (slopes, error > 0))
            for of_class in (known & ~positive, known & positive)
        ]
    )


def _quantiles(values: Tensor, shares: Tensor) -> Tensor:
    """Return the quantiles of values; zeros if there are none: of an example without an error the slope is unknown."""
    return values.quantile(shares) if len(values) else torch.zeros_like(shares)


def _losses(ground_truth: GroundTruth) -> Tensor:
    if ground_truth.losses is None:
        raise Refusal("class_gradients needs the loss of each example. Nobody wrote them down in this run.")
    return ground_truth.losses.double().cpu()
