import json

import pytest

from leaktight.defences import GaussianNoise
from leaktight.findings.summary import summarise
from leaktight.metrics.tradeoff import GREEN_BELOW, RED_ABOVE, abscissa
from leaktight.report.curve import figure_of


@pytest.fixture
def noise(made):
    return summarise(made.sweep()).curves[0]


def traces(figure, axis="x"):
    return {trace["name"]: trace for trace in figure["data"] if trace["xaxis"] == axis}


def test_utility_on_the_left_and_distance_on_the_right_over_the_ratio(noise):
    first = traces(figure_of(noise))
    places = [abscissa(ratio) for ratio in (0.5, 5, 50)]
    assert first["accuracy"]["x"] == first["distance from the truth"]["x"] == pytest.approx(places)
    assert first["accuracy"]["y"] == pytest.approx([40, 70, 80])
    assert first["distance from the truth"]["y"] == pytest.approx([1.0, 0.6, 0.1])
    assert (first["accuracy"]["yaxis"], first["distance from the truth"]["yaxis"]) == ("y", "y2")
    assert list(first["accuracy"]["text"]) == ["0.01", "0.001", "0.0001"]


def test_each_distance_has_a_row_and_one_legend_serves_all(noise):
    figure = figure_of(noise)
    assert len(figure["data"]) == 9
    assert [figure["layout"][axis]["title"]["text"] for axis in ("yaxis2", "yaxis4", "yaxis6")] == [
        "relative error",
        "labels missed",
        "not traced",
    ]
    assert sum(trace["showlegend"] for trace in figure["data"]) == 3


def test_bars_are_the_intervals(noise):
    line = traces(figure_of(noise))["distance from the truth"]
    spots = noise.spots[::-1]
    for number, spot in enumerate(spots):
        error = spot.distance("reconstruction")
        assert line["y"][number] + line["error_y"]["array"][number] == pytest.approx(error.high)
        assert line["y"][number] - line["error_y"]["arrayminus"][number] == pytest.approx(error.low)


def test_no_defence_is_a_dashed_line_and_no_point(noise, made):
    line = traces(figure_of(noise))["accuracy without defence"]
    assert line["y"] == pytest.approx((82, 82))
    assert line["line"]["dash"] == "dash"
    alone = summarise(made.sweep()[1:]).curves[0]
    assert "accuracy without defence" not in traces(figure_of(alone))


def test_shades_are_the_regions(noise):
    green, red = figure_of(noise)["layout"]["shapes"]
    assert (green["x0"], green["x1"]) == (0, pytest.approx(abscissa(GREEN_BELOW)))
    assert red["x0"] == pytest.approx(abscissa(RED_ABOVE))
    assert red["x1"] == figure_of(noise)["layout"]["xaxis"]["range"][1] > abscissa(50)
    assert {green["layer"], red["layer"]} == {"below"}


def test_strengths_without_ratio_cannot_be_placed(made):
    def curve(*ratios):
        strengths = enumerate(ratios, start=1)
        extra = [(GaussianNoise(std=std), made.characteristic(ratio, 0.5)) for std, ratio in strengths]
        return summarise([made.record(defence, extra=readings) for defence, readings in extra]).curves[0]

    assert figure_of(curve(None, None)) is None
    assert figure_of(curve(3.0, None)) is None
    assert len(traces(figure_of(curve(3.0, None, 30.0)))["accuracy"]["x"]) == 2


def test_errors_of_very_different_size_are_drawn_by_their_logarithm(made):
    records = [
        made.record(GaussianNoise(std=s), extra=made.characteristic(1 / s, e)) for s, e in ((0.1, 0.01), (1, 5000.0))
    ]
    figure = figure_of(summarise(records).curves[0])
    assert figure["layout"]["yaxis2"]["type"] == "log"
    records[1] = made.record(GaussianNoise(std=1), extra=made.characteristic(1.0, 0.0))
    assert figure_of(summarise(records).curves[0])["layout"]["yaxis2"]["rangemode"] == "tozero"


def test_a_figure_is_plain_json(noise):
    assert "template" not in json.loads(json.dumps(figure_of(noise)))["layout"]
