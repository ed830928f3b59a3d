"""Labels: how many of a message's labels an attack got right, whatever their order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import ClassVar, Literal

import torch
from scipy.special import bdtrc
from torch import Tensor

from leaktight.core.attack import Guess, GuessedLabels, Reconstruction
from leaktight.core.metric import Direction, Metric, Reading
from leaktight.core.random import Stream
from leaktight.core.run import GroundTruth
from leaktight.core.task import Batch
from leaktight.metrics.comparison import AGAINST, read, share_interval


def label_distance(guess: Tensor, truth: Tensor) -> Tensor:
    """Return for each true label 0 if a guessed label of the same class is left for it, else 1.

    Labels are matched one to one as multisets, because the order of a batch leaves no trace in its mean gradient. A
    missing guess is a miss; guesses beyond the number of truths do not count, as in `pairing.pair`.

    Args:
        guess: the guessed classes of one message.
        truth: its true classes; the count may differ.

    Example:
        >>> label_distance(torch.tensor([3, 1, 1]), torch.tensor([1, 2, 3]))
        tensor([0., 1., 0.], dtype=torch.float64)
    """
    left = guess[: len(truth)].tolist()
    missed = torch.ones(len(truth), dtype=torch.float64)
    for position, label in enumerate(truth.tolist()):
        if label in left:
            left.remove(label)
            missed[position] = 0
    return missed


def chance_distance(truth: Tensor, classes: int) -> float:
    r"""Return the expected mean distance of as many labels as the truth has, each drawn uniformly from all classes.

    With n labels, of which \(k_c\) are of class c, the number of guesses of class c is binomial and

    .. math:: 1 - \frac{1}{n} \sum_c E[\min(X_c, k_c)] = 1 - \frac{1}{n} \sum_c \sum_{j=1}^{k_c} \Pr[X_c \ge j],
        \qquad X_c \sim Bin(n, 1/C),

    which is 1 - 1/C for a single label.

    Args:
        truth: the true classes of one message.
        classes: how many classes there are, C.

    Example:
        >>> chance_distance(torch.tensor([3]), classes=10)
        0.9
    """
    n = len(truth)
    _, counts = torch.unique(truth, return_counts=True)
    hits = sum(float(bdtrc(j, n, 1 / classes)) for count in counts.tolist() for j in range(count))
    return 1 - hits / n


def likeliest(frequencies: Tensor, n: int) -> Tensor:
    r"""Return the n labels that hit most of n labels drawn with these class frequencies, in expectation.

    A j-th guess of class c hits with probability \(\Pr[X_c \ge j]\), \(X_c \sim Bin(n, p_c)\), so the n pairs (c, j)
    where that is largest are the best answer: about as many labels of each class as its frequency says, or all of one
    that prevails.

    Args:
        frequencies: the share of each class, adding up to 1.
        n: how many labels.

    Example:
        >>> likeliest(torch.tensor([0.1, 0.6, 0.3]), 1), likeliest(torch.tensor([0.1, 0.6, 0.3]), 5)
        (tensor([1]), tensor([1, 1, 1, 2, 2]))
    """
    hits = torch.from_numpy(
        bdtrc(torch.arange(n, dtype=torch.float64).numpy(), n, frequencies.double()[:, None].numpy())
    )
    best = torch.argsort(hits.flatten(), descending=True, stable=True)[:n]
    return (best // n).sort().values


def constant_distance(labels: Sequence[Tensor], classes: int) -> float:
    r"""Return the least mean distance of one answer to all messages of a size: the victims' commonest labels.

    A j-th guess of class c hits in the messages that hold it at least j times, so that of n guesses those n pairs (c,
    j) are the best for which there are most such messages. The answer is chosen with the truth in hand, so no attacker
    who saw no message does better by one answer for all. A message that is the only one of its size would be its own
    answer; there it is `chance_distance`.

    Args:
        labels: the true classes of each message, at least one label in all.
        classes: how many classes there are.

    Example:
        >>> constant_distance([torch.tensor([label]) for label in (3, 3, 3, 5)], classes=10)
        0.25
        >>> constant_distance([torch.tensor([1, 2]), torch.tensor([1, 1]), torch.tensor([1, 2])], classes=10)
        0.16666666666666666
    """
    by_size: dict[int, list[Tensor]] = {}
    for each in labels:
        by_size.setdefault(len(each), []).append(each)
    missed = 0.0
    for size, group in by_size.items():
        if len(group) == 1 and size:
            missed += size * chance_distance(group[0], classes)
            continue
        # How many messages hold a class at least so many times.
        holders = Counter(
            (label, times)
            for each in group
            for label, count in Counter(each.tolist()).items()
            for times in range(1, count + 1)
        )
        missed += len(group) * size - sum(count for _, count in holders.most_common(size))
    return missed / sum(map(len, labels))


class LabelDistance(Metric):
    """Categorical distance between guessed and true labels: 0 for a hit, 1 for a miss, averaged.

    The chance level is the best of labels drawn uniformly from all classes, of one answer for all messages made of the
    commonest labels among the victims, and, where there is public data, of the answer that its class frequencies make
    the best for every message. Soft guesses (one row of class weights for each label) count as their largest entry. The
    paper calls this the membership distance.

    Differs from the paper: it does not say how the labels of a batch are matched; here one to one, as multisets.

    Example:
        >>> LabelDistance().leaks
        'low'

    References:
        Fan et al., Rethinking Privacy Preserving Deep Learning: How to Evaluate and Thwart Privacy Attacks, 2020,
        sections 2.1 and 4.1 (membership distance).
    """

    kind: Literal["label_distance"] = "label_distance"
    title: ClassVar[str] = "labels missed"
    unit: ClassVar[str] = "%"
    digits: ClassVar[int | None] = 0
    claim: ClassVar[str] = "labels"
    leaks: ClassVar[Direction] = "low"

    def grade(
        self, guess: Guess, truth: Sequence[GroundTruth], rng: Stream, public: Batch | None = None
    ) -> tuple[Reading, ...]:
        """Return a reading against the raw and one against the used labels; none for a guess without labels."""
        if not isinstance(guess, GuessedLabels | Reconstruction) or guess.labels is None:
            return ()
        guesses = [_hard(labels) for labels in guess.labels]
        readings = []
        for against in AGAINST:
            labels = [
                (ground_truth.raw if against == "raw" else ground_truth.used).labels.cpu() for ground_truth in truth
            ]
            sizes = torch.tensor([len(each) for each in labels])
            if sizes.sum() == 0:
                continue
            distances = _distances(guesses, labels)
            interval = share_interval(distances, torch.repeat_interleave(sizes))
            readings.append(read(self, distances, interval, _chance(labels, truth[0].task.classes, public), against))
        return tuple(readings)


def _distances(guesses: Sequence[Tensor], labels: Sequence[Tensor]) -> Tensor:
    return torch.cat([label_distance(*pair) for pair in zip(guesses, labels, strict=True)])


def _chance(labels: Sequence[Tensor], classes: int, public: Batch | None) -> float:
    """Return the least mean distance of an answer that needs no message."""
    sizes = [len(each) for each in labels]
    uniform = sum(len(each) * chance_distance(each, classes) for each in labels if len(each)) / sum(sizes)
    blind = min(uniform, constant_distance(labels, classes))
    if public is None or len(public) == 0:
        return blind
    frequencies = torch.bincount(public.labels.cpu(), minlength=classes) / len(public)
    return min(blind, _distances([likeliest(frequencies, size) for size in sizes], labels).mean().item())


def _hard(labels: Tensor) -> Tensor:
    labels = labels.detach().cpu()
    return labels.argmax(1) if labels.dim() == 2 else labels
