"""The policies that are compared, by their names in our tables, and the paper's other defences."""

from __future__ import annotations

from collections.abc import Mapping

from leaktight.core.defence import Defence, Undefended
from leaktight.core.random import stream
from leaktight.defences import GaussianNoise, LaplaceNoise, Pruning
from leaktight.defences.transformation import Transformation
from leaktight.papers.transformation_search.scales import PUBLISHED, Study, Subject
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
    policies: dict[str, Policy] = {}
    while len(policies) < count:
        for candidate in draw_candidates(1, range(len(LIBRARY)), FUNCTIONS, rng):
            policies.setdefault(str(candidate), Policy.of(str(candidate)))
    return tuple(policies.values())


def plain_defence(study: Study) -> Defence:
    """Return what the paper calls no transformation: images as they are, or cropped and flipped where all are."""
    return Transformation(crop_flip=True) if study.crop_flip else Undefended()


def as_defence(study: Study, policy: Policy) -> Defence:
    """Return a policy as a defence."""
    return Transformation(policy=policy, crop_flip=study.crop_flip)


def as_defences(study: Study, policies: Mapping[str, Policy]) -> dict[str, Defence]:
    """Return policies as defences, after none."""
    return {NONE: plain_defence(study), **{name: as_defence(study, policy) for name, policy in policies.items()}}


def parts_of(hybrid: Policy) -> dict[str, Policy]:
    """Return what a search has found: its best policies, and the hybrid of them.

    Example:
        >>> {name: str(policy) for name, policy in parts_of(Policy.of("3-1-7+43-18-18")).items()}
        {'first': '3-1-7', 'second': '43-18-18', 'hybrid': '3-1-7+43-18-18'}
    """
    singles = [Policy(branches=(branch,)) for branch in hybrid.branches]
    return {**dict(zip((FIRST, SECOND), singles, strict=False)), HYBRID: hybrid}


def trained_random_policies(study: Study) -> dict[str, Policy]:
    """Return the random policies that are trained with, by name."""
    policies = random_policies(study.random, study.seed, "trained")
    return {f"{RANDOM} {number}": policy for number, policy in enumerate(policies, start=1)}


def published_hybrids(study: Study) -> dict[str, Policy]:
    """Return the paper's own hybrids that are measured beside ours, by name."""
    return {f"published {text}": Policy.of(text) for text in study.published}


def published_parts() -> tuple[Policy, ...]:
    """Return the four policies that the paper's hybrids for CIFAR100 are made of, each alone.

    Example:
        >>> [str(policy) for policy in published_parts()]
        ['3-1-7', '43-18-18', '21-13-3', '7-4-15']
    """
    return tuple(Policy(branches=(branch,)) for text in PUBLISHED for branch in Policy.of(text).branches)


def known_policies(study: Study, subject: Subject) -> dict[str, Policy]:
    """Return the policies that attackers know, by name: every hybrid."""
    return {HYBRID: study.hybrid_of(subject), **published_hybrids(study)}


def all_policies(study: Study, subject: Subject) -> dict[str, Policy]:
    """Return every policy of Table 1 by name."""
    return {**trained_random_policies(study), **parts_of(study.hybrid_of(subject)), **published_hybrids(study)}


def grouped_policies(study: Study, subject: Subject) -> dict[str, tuple[Policy | None, list[Defence]]]:
    """Return the rows of Table 1 by name: the policy, if it is one, and as defences; random ones are a row together."""
    drawn = trained_random_policies(study)
    rows: dict[str, tuple[Policy | None, list[Defence]]] = {
        NONE: (None, [plain_defence(study)]),
        RANDOM: (None, [as_defence(study, policy) for policy in drawn.values()]),
    }
    others = {name: policy for name, policy in all_policies(study, subject).items() if name not in drawn}
    return rows | {name: (policy, [as_defence(study, policy)]) for name, policy in others.items()}


def three_policies(study: Study) -> dict[str, Policy]:
    """Return one random policy, and the hybrid."""
    drawn = next(iter(trained_random_policies(study).values()))
    return {RANDOM: drawn, HYBRID: study.hybrid_of(study.focus)}


def three_defences(study: Study) -> dict[str, Defence]:
    """Return what six attacks and accuracy during training are compared on: none, one random policy, and the hybrid."""
    return as_defences(study, three_policies(study))
