"""Published experiments, at three scales, with the published numbers beside ours.

A `Paper` is data: what an order comes to at a scale (`scales.py` of its folder), and its `Experiment`s. Each
experiment, a table or a figure, is one file with its plans, rows, published numbers, checks and notes. To add one,
write that file and list it in the folder's `__init__.py`. `reproduce` runs a paper; `PAPERS` holds all.
"""

from leaktight.papers.catalogue import PAPERS, find_paper
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
