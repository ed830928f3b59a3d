"""The policies that the paper found, by network and data."""

from __future__ import annotations

from collections.abc import Mapping

from leaktight.transforms.policy import Policy

_TEXTS = {
    "ats2021-resnet20-cifar100": "3-1-7+43-18-18",
    "ats2021-convnet-cifar100": "21-13-3+7-4-15",
    "ats2021-resnet20-fashion-mnist": "19-15-45+2-43-21",
    "ats2021-convnet-fashion-mnist": "42-28-42+14-48-48",
}

PUBLISHED: Mapping[str, Policy] = {name: Policy.of(text) for name, text in _TEXTS.items()}
"""The hybrids of Table 1; their branches are the two policies that the search chose.

References:
    Gao et al., "Privacy-preserving Collaborative Learning with Automatic Transformation Search", 2021, Table 1.
"""
