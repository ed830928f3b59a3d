"""Reports: self-contained HTML made from records alone."""

from leaktight.report.render import render, write_report

__all__ = ["render", "write_report"]
