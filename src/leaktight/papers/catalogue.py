"""The catalogue: every paper that can be reproduced, by name."""

from __future__ import annotations

from typing import Any

from leaktight.core.errors import unknown
from leaktight.papers import class_keys, layer_leakage, polarization_network, split_label_leakage, transformation_search
from leaktight.papers.paper import Paper

PAPERS: dict[str, Paper[Any]] = {
    module.PAPER.name: module.PAPER
    for module in (polarization_network, split_label_leakage, layer_leakage, transformation_search, class_keys)
}


def find_paper(name: str) -> Paper[Any]:
    """Return the paper of this name, or raise an error that names the closest."""
    if name not in PAPERS:
        raise unknown("paper", name, PAPERS)
    return PAPERS[name]
