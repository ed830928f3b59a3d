"""The characteristic: utility and each distance in panels of their own, on scales that all defences share."""

import pytest

from leaktight.defences import GaussianNoise
from leaktight.findings.summary import summarise
from leaktight.metrics.tradeoff import GREEN_BELOW, RED_ABOVE, abscissa
from leaktight.report.curve import Scales, chart_of
from leaktight.report.palette import Palette

PALETTE = Palette.of([GaussianNoise()])


@pytest.fixture
def noise(made):
    return summarise(made.sweep()).curves[0]


def panels(curve, scales=None):
    return {panel.y.title: panel for panel in chart_of(curve, PALETTE, scales).panels}


def points(panel):
    return panel.series[0].points


def test_each_has_a_panel_of_its_own_over_the_ratio(noise):
    found = panels(noise)
    assert list(found) == [
        "accuracy",
        "relative error of the attack",
        "labels that the attack misses",
        "not traced",
    ]
    places = [abscissa(ratio) for ratio in (0.5, 5, 50)]
    for panel in found.values():
        assert [point.x for point in points(panel)] == pytest.approx(places)
    assert [point.y for point in points(found["accuracy"])] == pytest.approx([40, 70, 80])
    assert [point.y for point in points(found["relative error of the attack"])] == pytest.approx([1.0, 0.6, 0.1])
    assert [point.label for point in points(found["accuracy"])] == ["0.01", "", "0.0001"]


def test_bars_are_the_intervals(noise):
    line = points(panels(noise)["relative error of the attack"])
    for point, spot in zip(line, noise.spots[::-1], strict=True):
        error = spot.distance("reconstruction")
        assert (point.low, point.high) == pytest.approx((error.low, error.high))


def test_no_defence_is_a_dashed_line_and_no_point(noise, made):
    assert panels(noise)["accuracy"].level == pytest.approx(82)
    assert panels(noise)["accuracy"].words == "without defence"
    alone = summarise(made.sweep()[1:]).curves[0]
    assert panels(alone)["accuracy"].level is None


def test_shades_are_the_regions_in_greys_with_words(noise):
    strong, medium, weak = chart_of(noise, PALETTE).bands
    assert (strong.high, medium.high) == (abscissa(GREEN_BELOW), abscissa(RED_ABOVE))
    assert [band.words for band in (strong, medium, weak)] == ["strong", "medium", "weak"]
    assert strong.shade > medium.shade > weak.shade
    assert weak.high == chart_of(noise, PALETTE).x.high > abscissa(50)


def test_all_defences_share_their_scales(made):
    curves = summarise(made.sweep()).curves
    scales = Scales.of(curves)
    charts = [chart_of(curve, PALETTE, scales) for curve in curves]
    assert len({chart.x.high for chart in charts}) == 1
    assert len({panel.y for chart in charts for panel in chart.panels}) == 4


def test_strengths_without_ratio_cannot_be_placed(made):
    def curve(*ratios):
        strengths = enumerate(ratios, start=1)
        extra = [(GaussianNoise(std=std), made.characteristic(ratio, 0.5)) for std, ratio in strengths]
        return summarise([made.record(defence, extra=readings) for defence, readings in extra]).curves[0]

    assert chart_of(curve(None, None), PALETTE) is None
    assert chart_of(curve(3.0, None), PALETTE) is None
    assert len(points(panels(curve(3.0, None, 30.0))["accuracy"])) == 2


def test_errors_of_very_different_size_are_drawn_by_their_logarithm(made):
    records = [
        made.record(GaussianNoise(std=s), extra=made.characteristic(1 / s, e)) for s, e in ((0.1, 0.01), (1, 5000.0))
    ]
    assert panels(summarise(records).curves[0])["relative error of the attack"].y.log
    records[1] = made.record(GaussianNoise(std=1), extra=made.characteristic(1.0, 0.0))
    assert not panels(summarise(records).curves[0])["relative error of the attack"].y.log
