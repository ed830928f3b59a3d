"""Published experiments, at three scales, with the published numbers beside ours.

A `Paper` is data: what an order comes to at a scale (`scales.py` of its folder), and its `Experiment`s. Each
experiment, a table or a figure, is one file with its plans, rows, published numbers, checks and notes. To add one,
write that file and list it in the folder's `__init__.py`. `reproduce` runs a paper; `PAPERS` holds all.
"""

from typing import Any

from leaktight.core.errors import unknown
from leaktight.papers import class_keys, layer_leakage, polarization_network, split_label_leakage, transformation_search
from leaktight.papers.check import Check
from leaktight.papers.paper import Experiment, Order, Paper
from leaktight.papers.records import Records
from leaktight.papers.reproduction import Reproduction, reproduce
from leaktight.papers.row import Row, Tables

__all__ = [
    "PAPERS",
    "Check",
    "Experiment",
    "Order",
    "Paper",
    "Records",
    "Reproduction",
    "Row",
    "Tables",
    "find_paper",
    "reproduce",
]

PAPERS: dict[str, Paper[Any]] = {
    module.PAPER.name: module.PAPER
    for module in (polarization_network, split_label_leakage, layer_leakage, transformation_search, class_keys)
}


def find_paper(name: str) -> Paper[Any]:
    """Return the paper of this name, or raise an error that names the closest."""
    if name not in PAPERS:
        raise unknown("paper", name, PAPERS)
    return PAPERS[name]
