"""Outcomes: what a defence may make of an example before it trains on it, for an attacker who knows the defence but not its draws."""

from __future__ import annotations

import itertools
from typing import Protocol, runtime_checkable

from leaktight.core.defence import Chain, Defence
from leaktight.transforms.outcome import MOST, Outcome


@runtime_checkable
class Changing(Protocol):
    """A defence that can say in public what it may make of an example."""

    def outcomes(self, shape: tuple[int, ...]) -> tuple[Outcome, ...]:
        """Return everything that may happen to an example of this shape."""


def outcomes_of(defence: Defence, shape: tuple[int, ...]) -> tuple[Outcome, ...]:
    """Return what a defence may make of an example; nothing if it leaves examples alone, or cannot say what it does.

    The links of a chain draw independently, and each changes what the one before it made; of more than 64 combinations the likeliest
    are returned.

    Args:
        defence: what the participant does; public.
        shape: the shape of one example.

    Example:
        >>> from leaktight.defences import GaussianNoise, Transformation
        >>> chain = Chain(links=(Transformation(policy="3+0"), GaussianNoise(std=0.1)))
        >>> [(found.weight, found.name) for found in outcomes_of(chain, (1, 8, 8))]
        [(0.5, '0'), (0.25, '3+'), (0.25, '3-')]
    """
    if not isinstance(defence, Chain):
        return defence.outcomes(shape) if isinstance(defence, Changing) else ()
    found: tuple[Outcome, ...] = ()
    for link in defence.links:
        further = outcomes_of(link, shape)
        both = [_in_turn(*pair) for pair in itertools.product(found, further)]
        found = tuple(sorted(both, key=lambda one: -one.weight)[:MOST]) or found or further
    return found


def _in_turn(first: Outcome, second: Outcome) -> Outcome:
    name = f"{first.name}, {second.name}"
    return Outcome(first.weight * second.weight, lambda pixels: second.change(first.change(pixels)), name)
