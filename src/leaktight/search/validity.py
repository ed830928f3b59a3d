"""Validity: where the accuracy score says little about what a network will learn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torch import Tensor

MOST = 0.5
"""The share of random candidates that may score better than images as they are."""


def doubts(batches: Tensor, scores: Sequence[float], threshold: float) -> Iterator[str]:
    """Give the reasons to doubt the accuracy score, a sentence each.

    Changes that nobody chose for it seldom help to learn. So a score by which most of them do, or by which none of them
    hurts, does not measure that; and one that differs from batch to batch by more than was allowed measures the batch.

    Args:
        batches: the score of images as they are, of each batch; negative.
        scores: that of each candidate; higher is better.
        threshold: how many times worse than that of images as they are a score may be.

    Example:
        >>> import torch
        >>> [sentence] = doubts(torch.tensor([-2.0, -2.01]), [-1.5, -1.6, -4.0], 1.1)
        >>> sentence.partition(":")[0]
        'The accuracy score says little here'
    """
    base = batches.mean().item()
    better = sum(score > base for score in scores)
    failed = sum(score < threshold * base for score in scores)
    if better > MOST * len(scores):
        yield (
            f"The accuracy score says little here: by it {better} of {len(scores)} random policies are better to learn "
            "from than images as they are."
        )
    elif not failed:
        yield f"The accuracy score says little here: it passed all of {len(scores)} random policies."
    if len(batches) > 1:
        spread = batches.std().item() / abs(base)
        if spread > threshold - 1:
            yield (
                f"The accuracy score differs by {spread:.0%} from batch to batch, where {threshold - 1:.0%} decide; "
                "the mean over batches differs less."
            )
