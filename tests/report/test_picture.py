"""Pictures: an SVG file that has its colours with it."""

from xml.etree import ElementTree

from leaktight.report.chart import Chart, Panel, Point, Series, scale
from leaktight.report.picture import draw_picture


def test_it_is_an_svg_file_of_its_own_with_its_colours() -> None:
    points = (Point(0, 1, tip="a <b>"), Point(1, 2))
    panel = Panel(scale("y", [1, 2]), (Series("one & two", "colour1", points),))
    text = draw_picture(Chart(scale("x", [0, 1]), (panel,), "a > b"))
    root = ElementTree.fromstring(text)  # noqa: S314
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert root.get("aria-label") == "a > b"
    style = root.find("{http://www.w3.org/2000/svg}style").text
    assert ".colour1 { --c: var(--c1); }" in style
    assert "--c1: #" in style
    assert "prefers-color-scheme: dark" in style
    assert len(root.findall(".//{http://www.w3.org/2000/svg}path")) == 2
