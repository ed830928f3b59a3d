"""The catalogue: every paper that can be reproduced, by name."""

from __future__ import annotations

from leaktight.core.errors import unknown
from leaktight.papers.class_keys import KeyProtectedClassification
from leaktight.papers.layer_leakage import LayerLeakage
from leaktight.papers.paper import Paper
from leaktight.papers.polarization_network import PolarizationNetwork
from leaktight.papers.split_label_leakage import SplitLabelLeakage
from leaktight.papers.transformation_search import TransformationSearch

PAPERS: dict[str, Paper] = {
    paper.name: paper
    for paper in (
        PolarizationNetwork(),
        SplitLabelLeakage(),
        LayerLeakage(),
        TransformationSearch(),
        KeyProtectedClassification(),
    )
}


def find_paper(name: str) -> Paper:
    """Return the paper of this name, or raise an error that names the closest."""
    if name not in PAPERS:
        raise unknown("paper", name, PAPERS)
    return PAPERS[name]
