"""Sweeps: defences that differ in exactly one number, so that what they do can be drawn over it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from leaktight.core.defence import Defence, is_undefended, links
from leaktight.findings.display import Place, name_of


@dataclasses.dataclass(frozen=True)
class StrengthSweep:
    """One defence at several values of one of its numbers.

    Args:
        family: the defence without that number, other numbers that are not at their defaults included.
        field: the number's name.
        members: its values with the defence at each, from weak to strong where the defence says which way that is.
    """

    family: str
    field: str
    members: tuple[tuple[float, Defence], ...]


def sweeps(defences: Sequence[Defence]) -> tuple[StrengthSweep, ...]:
    """Return every sweep among defences.

    In a grid of several numbers, return the longest sweeps, and of equally long ones those over the strength.

    A defence may stand in two sweeps that cross in it, but no sweep is returned whose members all stand in longer ones.
    No defence, and a defence at the strength that means off, are what a sweep is compared with, not part of it.

    Args:
        defences: all different, in any order.

    Example:
        >>> from leaktight.defences import GaussianNoise, TopK
        >>> grid = [TopK(share=share, noise=noise) for share in (0.05, 0.3) for noise in (0.001, 0.01, 0.1)]
        >>> for sweep in sweeps([GaussianNoise(std=0.1), GaussianNoise(std=0.01), *grid]):
        ...     print(sweep.family, sweep.field, [value for value, _ in sweep.members])
        Gaussian noise std [0.01, 0.1]
        top-k (share 0.05) noise [0.001, 0.01, 0.1]
        top-k (share 0.3) noise [0.001, 0.01, 0.1]
    """
    alike: dict[tuple[object, ...], list[tuple[Defence, dict[Place, float]]]] = {}
    for defence in defences:
        if not is_undefended(defence) and not all(map(_off, links(defence))):
            leaves = dict(_leaves(defence.to_dict()))
            numbers = {place: float(value) for place, value in leaves.items() if _is_number(value)}
            shape = tuple((place, None if place in numbers else repr(value)) for place, value in leaves.items())
            alike.setdefault(shape, []).append((defence, numbers))
    return tuple(sweep for group in alike.values() for sweep in _choose(group))


def _choose(group: Sequence[tuple[Defence, dict[Place, float]]]) -> Iterator[StrengthSweep]:
    """Yield the sweeps among defences that differ in numbers alone, longest first, until none adds a defence."""
    lines: dict[tuple[Place, tuple[float, ...]], list[tuple[float, Defence]]] = {}
    for defence, numbers in group:
        for place, value in numbers.items():
            others = tuple(number for other, number in numbers.items() if other != place)
            lines.setdefault((place, others), []).append((value, defence))
    long = [(place, line) for (place, _), line in lines.items() if len(line) > 1]
    drawn: set[str] = set()
    for place, line in sorted(long, key=lambda item: (-len(item[1]), _direction(item[1][0][1], item[0]) is None)):
        keys = {defence.key for _, defence in line}
        if not keys <= drawn:
            drawn |= keys
            descending = _direction(line[0][1], place) == "down"
            members = tuple(sorted(line, key=lambda member: -member[0] if descending else member[0]))
            yield StrengthSweep(name_of(line[0][1], place), str(place[-1]).replace("_", " "), members)


def _leaves(value: Any, place: Place = ()) -> Iterator[tuple[Place, Any]]:
    """Yield every single setting with its place."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if inner is None:
        yield place, value
    else:
        for name, part in inner:
            yield from _leaves(part, (*place, name))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _direction(defence: Defence, place: Place) -> str | None:
    """Return which way a place's number is stronger, if it is the declared strength of the defence that holds it."""
    owner: Any = defence
    for step in place[:-1]:
        owner = owner[step] if isinstance(step, int) else getattr(owner, step)
    if not isinstance(owner, Defence) or owner.strength is None or owner.strength.field != place[-1]:
        return None
    return owner.strength.stronger


def _off(defence: Defence) -> bool:
    """Return whether a single defence is at the strength that means off, with nothing else set."""
    strength = defence.strength
    if strength is None or strength.off is None:
        return is_undefended(defence)
    fields = type(defence).model_fields
    return all(
        getattr(defence, field) == (strength.off if field == strength.field else info.default)
        for field, info in fields.items()
    )
