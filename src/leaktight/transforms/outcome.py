"""Outcomes: everything that a policy can make of an image, with its probability, for an attacker who knows it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

from torch import Tensor

from leaktight.core.channel import MOST_OUTCOMES, Outcome
from leaktight.transforms.differentiable import differentiable, to_pixels
from leaktight.transforms.images import require_shape
from leaktight.transforms.library import LIBRARY, Function, same_as
from leaktight.transforms.policy import Policy, Probability, require_probability

Step = tuple[int, int]
"""An index and a sign."""


def outcomes(policy: Policy, shape: tuple[int, ...], probability: Probability = "always") -> tuple[Outcome, ...]:
    r"""Return every branch with every combination of signs, the most likely first; what does the same is one outcome.

    Over the outcomes o, \(\sum_o w_o = 1\), and the expected gradient under the policy is
    \(\sum_o w_o \nabla \ell(f(t_o(x)), y)\). Of more than 64 outcomes the most likely 64 are returned, of equals the
    first, with the probabilities that they have: their sum is then below 1.

    Args:
        policy: what is known to be applied.
        shape: (channels, height, width) of an image.
        probability: how the policy is applied; with `listed` each function may also be left out.

    Example:
        >>> [(found.weight, found.name) for found in outcomes(Policy.of("3-0"), (3, 32, 32))]
        [(0.5, '3+ 0'), (0.5, '3- 0')]
    """
    require_shape(shape)
    weights = _weights(policy, shape[0] == 1, probability)
    likely = sorted(weights, key=lambda steps: -weights[steps])[:MOST_OUTCOMES]
    return tuple(Outcome(weights[steps], _compose(steps, shape), _name(steps)) for steps in likely)


def is_enumerable(policy: Policy, probability: Probability = "always") -> bool:
    """Return whether `outcomes` has everything that a policy can make of a colour image.

    Example:
        >>> is_enumerable(Policy.of("3-1-7")), is_enumerable(Policy.of("3-1-7"), "listed")
        (True, True)
    """
    return len(_weights(policy, False, probability)) <= MOST_OUTCOMES


def _weights(policy: Policy, grey: bool, probability: Probability) -> dict[tuple[Step, ...], float]:
    """Return everything that can act, with its probability."""
    require_probability(probability)
    weights: dict[tuple[Step, ...], float] = {}
    for branch in policy.branches:
        for weight, steps in _paths(branch, grey, probability):
            weights[steps] = weights.get(steps, 0.0) + weight / len(policy.branches)
    return {steps: weight for steps, weight in weights.items() if weight > 0}


def add_mirror(plain: tuple[Outcome, ...]) -> tuple[Outcome, ...]:
    """Return outcomes of images that are seen in a mirror every other time, before anything else is done to them.

    Example:
        >>> [(one.weight, one.name) for one in add_mirror(outcomes(Policy.of("0"), (1, 8, 8)))]
        [(0.5, '0'), (0.5, 'mirrored 0')]
    """
    pairs = [
        (Outcome(outcome.weight / 2, outcome.change, outcome.name), _after_mirror(outcome))
        for outcome in plain[: MOST_OUTCOMES // 2]
    ]
    return tuple(itertools.chain.from_iterable(pairs))


def _after_mirror(outcome: Outcome) -> Outcome:
    return Outcome(outcome.weight / 2, lambda images: outcome.change(images.flip(-1)), f"mirrored {outcome.name}")


def _paths(branch: tuple[int, ...], grey: bool, probability: Probability) -> Iterator[tuple[float, tuple[Step, ...]]]:
    """Return all that a branch can do: the functions that act, each with a sign (0 if none), and how likely it is."""
    choices = [
        list(_choices(LIBRARY[same_as(index)], LIBRARY[index].probability, grey, probability)) for index in branch
    ]
    for path in itertools.product(*choices):
        weight, steps = 1.0, []
        for share, step in path:
            weight *= share
            steps += [] if step is None else [step]
        yield weight, tuple(steps)


def _choices(
    function: Function, listed: float, grey: bool, probability: Probability
) -> Iterator[tuple[float, Step | None]]:
    """Return what one call can do, with probabilities; None is nothing."""
    if function.identity or (grey and function.operation == "color"):
        yield 1.0, None
        return
    share = 1.0 if probability == "always" else listed
    for sign in (1, -1) if function.signed else (0,):
        yield share / (2 if function.signed else 1), (function.index, sign)
    if share < 1:
        yield 1 - share, None


def _compose(steps: tuple[Step, ...], shape: tuple[int, ...]) -> Callable[[Tensor], Tensor]:
    changes = [differentiable(LIBRARY[index], shape, sign or 1) for index, sign in steps]

    def change(images: Tensor) -> Tensor:
        pixels = to_pixels(images)
        for each in changes:
            pixels = each(pixels)
        return pixels / 255

    return change


def _name(steps: tuple[Step, ...]) -> str:
    return " ".join(f"{index}{'' if not sign else '+' if sign > 0 else '-'}" for index, sign in steps) or "as it is"
