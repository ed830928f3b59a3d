"""Reports: self-contained HTML made from records alone; `report.pdf` draws the summary as a PDF."""

from leaktight.report.layer_report import write_layer_report
from leaktight.report.render import render, write_report

__all__ = ["render", "write_layer_report", "write_report"]
