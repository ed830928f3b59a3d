"""Pairing: which guess stands for which true example. The order of a batch leaves no trace in its mean gradient."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from leaktight.core.errors import InvalidValue

UNPAIRED = -1


def is_image(shape: Sequence[int]) -> bool:
    """Return whether an example of this shape is an image: channels, height, width, pixels in [0, 1]."""
    return len(shape) == 3


def blank(truth: Tensor) -> Tensor:
    """Return the answer of an attacker who saw nothing: mid-grey (0.5) for images, zeros for anything else.

    Example:
        >>> blank(torch.rand(1, 3, 2, 2)).unique(), blank(torch.rand(1, 4)).unique()
        (tensor([0.5000]), tensor([0.]))
    """
    return torch.full_like(truth, 0.5 if is_image(truth.shape[1:]) else 0.0)


def on_screen(examples: Tensor) -> Tensor:
    """Return guessed images cut to [0, 1], as anyone would see them; other data as they are.

    Example:
        >>> on_screen(torch.full((1, 1, 1, 1), 7.0)).item(), on_screen(torch.full((1, 1), 7.0)).item()
        (1.0, 7.0)
    """
    return examples.clamp(0, 1) if is_image(examples.shape[1:]) else examples


def pair(guess: Tensor, truth: Tensor) -> Tensor:
    r"""Return for each true example the position of its guess, or -1 if it has none.

    The pairing is one to one and has the least total squared error,

    .. math:: \min_{\pi} \sum_i \lVert guess_{\pi(i)} - truth_i \rVert^2 .

    Fewer guesses than truths leave the truths that fit worst without a guess. Of more guesses than truths only the
    first `len(truth)` count: to pick the best of many with the truth in hand would do the attacker's work for it, so an
    attack puts first what it trusts most.

    Args:
        guess: guessed examples of one message, of any shape.
        truth: true examples of the same message and shape; the count may differ.

    Example:
        >>> pair(torch.tensor([[0.9], [0.1]]), torch.tensor([[0.0], [1.0]]))
        tensor([1, 0])
        >>> pair(torch.tensor([[0.9]]), torch.tensor([[0.0], [1.0]]))
        tensor([-1,  0])
    """
    if guess.shape[1:] != truth.shape[1:]:
        raise InvalidValue(
            f"The guessed examples must have the shape {tuple(truth.shape[1:])} of the true ones. Got "
            f"{tuple(guess.shape[1:])} instead."
        )
    positions = torch.full((len(truth),), UNPAIRED)
    candidates = _plain(guess)[: len(truth)].flatten(1)
    if len(candidates) == 0:
        return positions
    # The fast way by matrix products loses near-zero distances, and those decide between good guesses.
    cost = torch.cdist(_plain(truth).flatten(1), candidates, compute_mode="donot_use_mm_for_euclid_dist").square()
    rows, columns = linear_sum_assignment(cost.numpy())
    positions[torch.from_numpy(rows)] = torch.from_numpy(columns)
    return positions


def arrange(guess: Tensor, truth: Tensor) -> Tensor:
    """Return the guesses in the order of their paired truths; a truth without a guess gets the blank answer.

    Scoring an unguessed example as `blank` is what an attacker would get by filling up its answer, so that withholding
    a guess gains nothing over saying nothing.

    Args:
        guess: guessed examples of one message, of any shape.
        truth: true examples of the same message and shape; the count may differ.

    Example:
        >>> arrange(torch.tensor([[0.9], [0.1]]), torch.tensor([[0.0], [1.0]])).flatten()
        tensor([0.1000, 0.9000], dtype=torch.float64)
    """
    positions = pair(guess, truth)
    out = blank(_plain(truth))
    paired = positions != UNPAIRED
    out[paired] = _plain(guess)[positions[paired]]
    return out


def arrange_all(guesses: Sequence[Tensor], truths: Sequence[Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    """Pair message by message and return guesses and truths, example by example, and each example's message number.

    Example:
        >>> examples = [torch.ones(2, 3), torch.zeros(1, 3)]
        >>> guesses, truths, messages = arrange_all(examples, examples)
        >>> torch.equal(guesses, truths), messages
        (True, tensor([0, 0, 1]))
    """
    arranged = [arrange(guess, truth) for guess, truth in zip(guesses, truths, strict=True)]
    messages = torch.repeat_interleave(torch.tensor([len(truth) for truth in truths]))
    return torch.cat(arranged), torch.cat([_plain(truth) for truth in truths]), messages


def _plain(examples: Tensor) -> Tensor:
    """Return the examples where and how all scoring is done: on the CPU, in double precision."""
    return examples.detach().cpu().double()
