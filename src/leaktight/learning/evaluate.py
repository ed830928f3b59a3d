"""Evaluate: how good a model is at what it was trained for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from scipy.special import stdtrit
from torch import Tensor, nn

from leaktight.core.errors import InvalidValue
from leaktight.core.message import Tensors
from leaktight.core.metric import Reading
from leaktight.core.task import Batch, Task
from leaktight.statistics.auc import delong, placements
from leaktight.statistics.interval import wilson
from leaktight.statistics.outcomes import pack_hits, pack_ranks, pack_shares


def hits(scores: Tensor, labels: Tensor) -> Tensor:
    """Return for each example whether its largest score is at its label; scores that are not numbers are a miss.

    Example:
        >>> hits(torch.tensor([[0.1, 0.9], [float("nan"), 0.0]]), torch.tensor([1, 0]))
        tensor([ True, False])
    """
    return (scores.argmax(1) == labels) & ~scores.isnan().any(1)


def accuracy(scores: Tensor, labels: Tensor) -> float:
    """Return the share of examples whose largest score is at their label.

    Args:
        scores: one row of class scores for each example.
        labels: the true classes.

    Example:
        >>> accuracy(torch.tensor([[0.1, 0.9], [0.8, 0.2]]), torch.tensor([1, 1]))
        0.5
    """
    _check_some(labels)
    return hits(scores, labels).double().mean().item()


def majority(labels: Tensor) -> float:
    """Return the share of the most frequent class: the accuracy of a model that always names it.

    Example:
        >>> majority(torch.tensor([0, 1, 1, 1]))
        0.75
    """
    _check_some(labels)
    return int(torch.unique(labels, return_counts=True)[1].max()) / len(labels)


def grade_scores(scores: Tensor, labels: Tensor, classes: int, keep: bool = False) -> tuple[Reading, ...]:
    """Return AUC, for two classes, and accuracy of class scores.

    Args:
        scores: one row of class scores for each example.
        labels: the true classes.
        classes: how many classes there are.
        keep: whether readings say what became of each example, for a comparison with another model on the same ones.

    Example:
        >>> [reading.name for reading in grade_scores(torch.eye(2), torch.tensor([0, 1]), classes=2)]
        ['auc', 'accuracy']
    """
    share = accuracy_reading(hits(scores, labels), labels, keep)
    if classes != 2 or len(torch.unique(labels)) < 2:
        return (share,)
    # A model that has diverged ranks nobody.
    ranked = (scores[:, 1] - scores[:, 0]).nan_to_num(0.0, 1e30, -1e30)
    value, (low, high) = delong(ranked, labels)
    outcomes = pack_ranks(*placements(ranked, labels)) if keep else ""
    return Reading(name="auc", value=value, low=low, high=high, n=len(labels), chance=0.5, outcomes=outcomes), share


def utility(task: Task, parameters: Tensors, batch: Batch, chunk: int = 512, keep: bool = False) -> tuple[Reading, ...]:
    """Return the accuracy of a task with these parameters.

    It comes with Wilson's interval, and with the majority share as chance level.

    The model runs in evaluation mode (no dropout) and is left in the mode it was in.

    Args:
        task: what is learned; its model's own parameters stand in for any that are not given.
        parameters: values by the model's own parameter names.
        batch: held-out examples; at least one.
        chunk: how many examples go through the model at once, at least 1; more needs more memory.
        keep: whether the reading says which examples were told right, for a comparison with another model on the same
            ones.

    Example:
        >>> from leaktight.core.task import Model
        >>> model = Model(nn.Identity(), nn.Linear(2, 2, bias=False))
        >>> task = Task(model, nn.functional.cross_entropy, lambda outputs: outputs, shape=(2,), classes=2)
        >>> reading, = utility(task, {"head.weight": torch.eye(2)}, Batch(torch.eye(2), torch.tensor([0, 1])))
        >>> reading.name, reading.value, reading.chance
        ('accuracy', 1.0, 0.5)
    """
    return (accuracy_reading(correct_examples(task, parameters, batch, chunk), batch.labels, keep),)


def correct_examples(task: Task, parameters: Tensors, batch: Batch, chunk: int = 512) -> Tensor:
    """Return for each example whether a task with these parameters tells it right; arguments are those of `utility`."""
    _check_some(batch.labels)
    if chunk < 1:
        raise InvalidValue(f"The `chunk` of utility must be at least 1. Got {chunk} instead.")
    correct: list[Tensor] = []
    with torch.no_grad(), _evaluation_mode(task.model):
        for start in range(0, len(batch), chunk):
            part = Batch(batch.inputs[start : start + chunk], batch.labels[start : start + chunk]).to(task.device)
            correct.append(hits(task.predict(task.forward(parameters, part.inputs)), part.labels).cpu())
    return torch.cat(correct)


def mean_loss(task: Task, parameters: Tensors, batch: Batch, chunk: int = 512) -> Reading:
    """Return the mean loss of a task with these parameters, with Student's interval over examples.

    The model runs in evaluation mode, as for `utility`.

    Args:
        task: what is learned.
        parameters: values by the model's own parameter names.
        batch: at least one example.
        chunk: how many examples go through the model at once, at least 1.

    Example:
        >>> from leaktight.core.task import Model
        >>> model, loss = Model(nn.Identity(), nn.Linear(2, 2, bias=False)), nn.CrossEntropyLoss(reduction="none")
        >>> task = Task(model, loss, lambda outputs: outputs, shape=(2,), classes=2)
        >>> examples = Batch(torch.zeros(4, 2), torch.tensor([0, 1, 0, 1]))
        >>> round(mean_loss(task, {"head.weight": torch.eye(2)}, examples).value, 4)
        0.6931
    """
    _check_some(batch.labels)
    losses: list[Tensor] = []
    with torch.no_grad(), _evaluation_mode(task.model):
        for start in range(0, len(batch), chunk):
            part = Batch(batch.inputs[start : start + chunk], batch.labels[start : start + chunk]).to(task.device)
            losses.append(task.loss(task.forward(parameters, part.inputs), part.labels).cpu().double())
    values = torch.cat(losses)
    mean, n = values.mean().item(), len(values)
    half = None if n < 2 else float(stdtrit(n - 1, 0.975)) * values.std().item() / n**0.5
    return Reading(
        name="loss",
        value=mean,
        low=None if half is None else mean - half,
        high=None if half is None else mean + half,
        n=n,
    )


def accuracy_reading(correct: Tensor, labels: Tensor, keep: bool = False) -> Reading:
    """Return the share of examples that were classified correctly, as a reading.

    It comes with Wilson's interval, and with the majority share as chance level.

    Args:
        correct: for each example whether it was classified correctly.
        labels: the true classes.
        keep: whether the reading says which they were.

    Example:
        >>> accuracy_reading(torch.tensor([True, False]), torch.tensor([0, 0])).value
        0.5
    """
    count = int(correct.sum())
    low, high = wilson(count, len(labels))
    return Reading(
        name="accuracy",
        value=count / len(labels),
        low=low,
        high=high,
        n=len(labels),
        chance=majority(labels),
        outcomes=pack_hits(correct) if keep else "",
    )


def mean_accuracy_reading(correct: Tensor, labels: Tensor, keep: bool = False) -> Reading:
    """Return the mean accuracy of several models on the same examples, as a reading.

    Its interval is Wilson's for a single model, which is cautious: the mean of several varies no more.

    Args:
        correct: (models, examples), whether each model was right about each example.
        labels: the true classes.
        keep: whether the reading says by what share of the models each example was told right.

    Example:
        >>> correct = torch.tensor([[True, False], [True, True]])
        >>> mean_accuracy_reading(correct, torch.tensor([0, 0])).value
        0.75
    """
    shares = correct.double().mean(0)
    low, high = wilson(shares.sum().item(), len(labels))
    return Reading(
        name="accuracy",
        value=shares.mean().item(),
        low=low,
        high=high,
        n=len(labels),
        chance=majority(labels),
        outcomes=pack_shares(shares) if keep else "",
    )


@contextmanager
def _evaluation_mode(model: nn.Module) -> Iterator[None]:
    """Put every part of a model into evaluation mode inside the block, and each back into its own mode after."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training


def _check_some(labels: Tensor) -> None:
    if len(labels) == 0:
        raise InvalidValue("Accuracy needs at least one labelled example. Got an empty batch instead.")
