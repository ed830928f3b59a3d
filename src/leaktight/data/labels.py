"""Labels: class ids of any kind, numbered from 0."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leaktight.core.errors import InvalidValue

Ids = NDArray[Any]


def as_ids(labels: Ids, what: str) -> Ids:
    """Return labels as one row of whole numbers or words; text that consists of whole numbers becomes numbers.

    Args:
        labels: one label per example, as a row or a column.
        what: whose labels they are, for the error.

    Example:
        >>> as_ids(np.array([["10"], ["9"]]), "The labels").tolist()
        [10, 9]
    """
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise InvalidValue(
            f"{what} must be one number or word per example. Got labels of shape {labels.shape} instead."
        )
    if labels.dtype.kind == "f":
        if not np.isfinite(labels).all() or (labels != np.round(labels)).any():
            raise InvalidValue(f"{what} must be whole numbers or words. Got fractions or NaN instead.")
        return labels.astype(np.int64)
    if labels.dtype.kind == "U":
        try:
            return labels.astype(np.int64)
        except (ValueError, OverflowError):
            return labels
    if labels.dtype.kind not in "iub":
        raise InvalidValue(f"{what} must be whole numbers or words. Got {labels.dtype} instead.")
    return labels.astype(np.int64)


def number(
    train: Ids, test: Ids, what: str, positive: str = ""
) -> tuple[NDArray[np.int64], NDArray[np.int64], tuple[str, ...]]:
    """Number the ids that occur in the training labels from 0, in their order, and return what each number stands for.

    Args:
        train: the training labels, as from `as_ids`.
        test: the test labels; each must occur in training.
        what: whose labels they are, for the error.
        positive: of two, the one that is numbered 1; empty keeps their order.

    Example:
        >>> train, test, names = number(np.array([6, 25, 97, 6]), np.array([97, 25]), "It")
        >>> train.tolist(), test.tolist(), names
        ([0, 1, 2, 0], [2, 1], ('6', '25', '97'))
        >>> number(np.array(["bad", "good"]), np.array(["bad"]), "It", positive="bad")[2]
        ('good', 'bad')
    """
    if train.dtype.kind != test.dtype.kind:
        train, test = train.astype(str), test.astype(str)
    ids, codes = np.unique(train, return_inverse=True)
    strange = np.setdiff1d(test, ids)
    if len(strange):
        shown = ", ".join(f"`{label}`" for label in strange[:3])
        raise InvalidValue(f"{what} must have test labels that occur in training. Got {shown} in the test data only.")
    train_codes, test_codes = codes.astype(np.int64), np.searchsorted(ids, test).astype(np.int64)
    names = tuple(str(label) for label in ids)
    if not positive:
        return train_codes, test_codes, names
    if len(names) != 2 or positive not in names:
        shown = ", ".join(f"`{name}`" for name in names[:5])
        raise InvalidValue(
            f"{what} must have two labels of which `{positive}` is the positive one. Got {len(names)}: "
            f"{shown}{', ...' * (len(names) > 5)}."
        )
    if names[0] == positive:
        return 1 - train_codes, 1 - test_codes, (names[1], names[0])
    return train_codes, test_codes, names


def in_range(labels: Ids, classes: int, what: str) -> NDArray[np.int64]:
    """Return whole labels that are below a known number of classes, or say which one is not."""
    wrong = np.flatnonzero((labels < 0) | (labels >= classes)) if labels.dtype.kind in "iu" else np.arange(1)
    if len(wrong):
        raise InvalidValue(
            f"{what} must have labels from 0 to {classes - 1}. Got `{labels[wrong[0]]}` at example {wrong[0]} instead."
        )
    return labels.astype(np.int64)


def match_names(ids: Sequence[str], names: Sequence[str]) -> tuple[str, ...] | None:
    """Return the names of these ids: one for each in order, or looked up by id; None if they do not fit.

    Example:
        >>> match_names(["6", "25"], ["bee", "couch"])
        ('bee', 'couch')
        >>> match_names(["0", "2"], ["cat", "dog", "frog"])
        ('cat', 'frog')
    """
    if len(names) == len(ids):
        return tuple(map(str, names))
    if all(label.isdecimal() and int(label) < len(names) for label in ids):
        return tuple(str(names[int(label)]) for label in ids)
    return None
