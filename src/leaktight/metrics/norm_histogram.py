"""Norm histogram: how long the gradients of positives and of negatives are, beside each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

import torch
from torch import Tensor

from leaktight.core.attack import Guess
from leaktight.core.message import Kind
from leaktight.core.metric import MESSAGE, Direction, Metric, Quantity, Reading
from leaktight.core.random import Stream
from leaktight.core.run import GroundTruth
from leaktight.core.task import Batch

LOWEST, HIGHEST, WIDTH = -3.0, 2.0, 0.05
"""The bins, in decades of the norm relative to its mean over the step; the end bins count what lies outside."""
BINS = round((HIGHEST - LOWEST) / WIDTH)


class NormHistogram(Metric):
    r"""Histograms of the norms of cut gradients as they were sent, by class: what the norm attack lives on.

    With \(g_i\) the gradient of example i and n examples in the step, what is counted is

    .. math:: \log_{10} \frac{\|g_i\|_2}{\frac1n \sum_j \|g_j\|_2},

    over all steps measured; relative to the step, because norms shrink by orders of magnitude during a training run,
    and an attacker compares examples of one step. `norm_negative` and `norm_positive` hold the median relative norm of
    their class; `each` is the count in each of `BINS` bins of fixed width. Steps without any gradient are left out.

    It is a statistic of the label party's private labels, and no attacker has it. Nothing is kept of a single example
    but that it fell in a bin; still a bin with one example in it reveals that example, so a redacted report leaves the
    counts out.

    Example:
        >>> counts = histogram(torch.tensor([1.0, 1.0, 10.0, 1e9]))
        >>> len(counts), int(counts.sum()), int(counts[-1])
        (100, 4, 1)

    Differs from the paper: It plots the norms themselves, of single steps, without saying of which.

    References:
        Li et al., Label Leakage and Protection in Two-party Split Learning, 2021, Fig. 1 (distribution of gradient
        norms).
    """

    kind: Literal["norm_histogram"] = "norm_histogram"
    claim: ClassVar[str] = MESSAGE
    leaks: ClassVar[Direction | None] = None

    @classmethod
    def quantities(cls) -> Mapping[str, Quantity]:
        """Return what it reads, by the names of its readings."""
        return {
            "norm_negative": Quantity("gradient norm, negatives"),
            "norm_positive": Quantity("gradient norm, positives"),
        }

    def grade(
        self, guess: Guess, truth: Sequence[GroundTruth], rng: Stream, public: Batch | None = None
    ) -> tuple[Reading, ...]:
        """Return one reading for each of two classes; nothing for other messages than cut gradients."""
        groups: dict[int, list[Tensor]] = {0: [], 1: []}
        for ground_truth in truth:
            if ground_truth.sent.kind is Kind.CUT_GRADIENT and ground_truth.task.classes == len(groups):
                norms = relative(*ground_truth.sent.tensors.values())
                labels = ground_truth.raw.labels.to(norms.device)
                for label, group in groups.items():
                    group.append(norms[labels[: len(norms)] == label])
        norms_of = {label: torch.cat(group) for label, group in groups.items() if group}
        return tuple(
            Reading(
                name=f"norm_{name}",
                value=norms_of[label].median().item(),
                n=len(norms_of[label]),
                against="raw",
                each=tuple(histogram(norms_of[label]).tolist()),
            )
            for label, name in enumerate(("negative", "positive"))
            if label in norms_of and len(norms_of[label])
        )


def relative(rows: Tensor) -> Tensor:
    """Return the norm of each row relative to their mean; none of rows that are all zero.

    Example:
        >>> relative(torch.tensor([[3.0, 4.0], [0.0, 15.0]])).tolist()
        [0.5, 1.5]
    """
    flat = rows.detach().flatten(1).double()
    norms = flat.norm(dim=1)
    mean = norms.mean()
    shares: Tensor = (norms / mean).cpu() if len(norms) and mean > 0 and torch.isfinite(mean) else norms[:0].cpu()
    return shares


def histogram(norms: Tensor) -> Tensor:
    """Return how many relative norms fall in each bin."""
    decades = norms.double().clamp_min(1e-300).log10()
    bins = ((decades - LOWEST) / WIDTH).floor().clamp(0, BINS - 1).long()
    return torch.bincount(bins, minlength=BINS)
