"""Pictures: a chart as an SVG file of its own, with its colours, for pages that have another style than ours."""

from __future__ import annotations

from leaktight.report.chart import WIDE, Chart
from leaktight.report.frame import read_styles


def draw_picture(chart: Chart, width: int = WIDE) -> str:
    """Return a chart as the text of an SVG file; it is dark where the reader's screen is.

    Args:
        chart: what is drawn.
        width: in pixels.
    """
    opening, _, drawing = str(chart.svg(width)).partition(">")
    head = opening.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg" class="plot"', 1)
    return f"{head}><style>{read_styles('palette', 'chart')}</style>{drawing}\n"
