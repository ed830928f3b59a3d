"""Published experiments, at three scales, with the published numbers beside ours.

A paper is a `Paper`: plans for a scale, tables from the records of those plans, the published tables, and checks of what the
paper claims. `reproduce` runs one; `PAPERS` holds all.
"""

from leaktight.papers.catalogue import PAPERS, find_paper
from leaktight.papers.paper import Order, Paper
from leaktight.papers.reproduce import reproduce
from leaktight.papers.reproduction import Check, Reproduction, Row, Tables

__all__ = ["PAPERS", "Check", "Order", "Paper", "Reproduction", "Row", "Tables", "find_paper", "reproduce"]
