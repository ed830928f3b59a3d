"""The policies that are compared, by their names in our tables, and the paper's other defences."""

from __future__ import annotations

from collections.abc import Mapping

from leaktight.core.defence import Defence, Undefended
from leaktight.core.random import stream
from leaktight.defences import GaussianNoise, LaplaceNoise, Pruning
from leaktight.defences.transformation import Transformation
from leaktight.papers.transformation_search.settings import PUBLISHED, Study
from leaktight.search.candidates import draw_candidates
from leaktight.transforms.library import LIBRARY
from leaktight.transforms.policy import Policy

NONE, RANDOM, FIRST, SECOND, HYBRID = "none", "random", "first", "second", "hybrid"
FUNCTIONS = 3
"""How many functions a policy has at most."""
BASELINES: dict[str, Defence] = {
    **{f"pruning {rate:.0%}": Pruning(rate=rate) for rate in (0.7, 0.95, 0.99)},
    **{f"Laplace {scale:g}": LaplaceNoise(scale=scale) for scale in (1e-3, 1e-2)},
    **{f"Gaussian {std:g}": GaussianNoise(std=std) for std in (1e-3, 1e-2)},
}
"""The paper's other defences (Table 3)."""


def random_policies(count: int, *names: object) -> tuple[Policy, ...]:
    """Return so many different random policies of at most three functions, from a stream of these names.

    Example:
        >>> len(set(map(str, random_policies(50, 0, "compared"))))
        50
    """
    rng = stream(0, "transformation-search", *map(str, names))
    found: dict[str, Policy] = {}
    while len(found) < count:
        for one in draw_candidates(1, range(len(LIBRARY)), FUNCTIONS, rng):
            found.setdefault(str(one), Policy.of(str(one)))
    return tuple(found.values())


def undefended(study: Study) -> Defence:
    """Return what the paper calls no transformation: images as they are, or cropped and flipped where every training does that."""
    return Transformation(crop_flip=True) if study.crop_flip else Undefended()


def transformed(study: Study, policy: Policy) -> Defence:
    """Return a policy as a defence."""
    return Transformation(policy=policy, crop_flip=study.crop_flip)


def searched(policy: Policy) -> dict[str, Policy]:
    """Return what a search has found: its best policies, and the hybrid of them.

    Example:
        >>> {name: str(one) for name, one in searched(Policy.of("3-1-7+43-18-18")).items()}
        {'first': '3-1-7', 'second': '43-18-18', 'hybrid': '3-1-7+43-18-18'}
    """
    singles = [Policy(branches=(branch,)) for branch in policy.branches]
    return {**dict(zip((FIRST, SECOND), singles, strict=False)), HYBRID: policy}


def random_ones(study: Study, seed: int) -> dict[str, Policy]:
    """Return the random policies that are trained with, by name."""
    drawn_ones = random_policies(study.random, seed, "trained")
    return {f"{RANDOM} {number}": policy for number, policy in enumerate(drawn_ones, start=1)}


def published_ones(study: Study) -> dict[str, Policy]:
    """Return the paper's own hybrids that are measured beside ours, by name."""
    return {f"published {text}": Policy.of(text) for text in study.published}


def published_parts() -> tuple[Policy, ...]:
    """Return the four policies that the paper's hybrids for CIFAR100 are made of, each alone.

    Example:
        >>> [str(one) for one in published_parts()]
        ['3-1-7', '43-18-18', '21-13-3', '7-4-15']
    """
    return tuple(Policy(branches=(branch,)) for text in PUBLISHED for branch in Policy.of(text).branches)


def known_ones(study: Study, found: Policy) -> dict[str, Policy]:
    """Return the policies that attackers are told of, by name: every hybrid."""
    return {HYBRID: found, **published_ones(study)}


def all_policies(study: Study, found: Policy, seed: int) -> dict[str, Policy]:
    """Return every policy of Table 1 by name."""
    return {**random_ones(study, seed), **searched(found), **published_ones(study)}


def as_defences(study: Study, policies: Mapping[str, Policy]) -> dict[str, Defence]:
    """Return policies as defences, after none."""
    return {NONE: undefended(study), **{name: transformed(study, one) for name, one in policies.items()}}
