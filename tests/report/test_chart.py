"""Charts as SVG: well formed, readable by everyone, and with nothing drawn outside."""

from itertools import pairwise

import pytest
from defusedxml import ElementTree
from hypothesis import example, given
from hypothesis import strategies as st

from leaktight.report.chart import NARROW, WIDE, Band, Chart, Figure, Panel, Point, Series, named, scale, spread


def chart(*series, level=0.5, names=("none", "0.1", "0.5")):
    return Chart(
        named("strength", names), (Panel(scale("leak AUC", (), ends=(0.4, 1)), series, 120, level),), "About it"
    )


def line(name="top-k", tag="", ys=(0.9, 0.7, 0.6), **more):
    points = tuple(Point(float(x), y, y - 0.05, y + 0.05, tip=f"{name} {y}") for x, y in enumerate(ys))
    return Series(name, "colour0", points, tag=tag, **more)


def elements(drawn, kind):
    root = ElementTree.fromstring(str(drawn))
    return [one for one in root.iter() if one.get("class", "").split(" ")[0] == kind]


def texts(drawn):
    return ["".join(one.itertext()) for one in ElementTree.fromstring(str(drawn)).iter("text")]


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_it_is_well_formed_and_says_what_it_shows(width):
    drawn = chart(line()).svg(width)
    root = ElementTree.fromstring(str(drawn))
    assert (root.get("role"), root.get("aria-label")) == ("img", "About it")
    assert root.get("viewBox").split(" ")[2] == str(width)
    assert len(elements(drawn, "mark")) == len(elements(drawn, "whisker")) == 3
    assert len(elements(drawn, "level")) == 1
    assert "top-k 0.9" in {title.text for title in root.iter("title")}


def test_names_are_text_and_never_markup():
    drawn = str(chart(line('<script>alert("x")</script>', tag="a & b")).svg())
    assert "<script" not in drawn
    assert "a &amp; b" in drawn


def test_names_stand_at_the_ends_of_lines_where_there_is_room_and_below_else():
    two = (line("top-k", tag="top-k"), line("noise", tag="noise", ys=(0.9, 0.71, 0.61)))
    wide = chart(*two).svg(WIDE)
    assert texts(wide).count("top-k") == 1
    heights = sorted(float(one.get("y")) for one in elements(wide, "label"))
    assert heights[1] - heights[0] >= 14
    long = "layer guard (guard Gaussian noise, count 1, layers head)"
    crowded = chart(line(long, tag=long), line("noise", tag="noise")).svg(NARROW)
    assert long in texts(crowded)
    assert not elements(crowded, "leader")


def test_labels_that_find_no_place_are_left_to_the_tips():
    points = tuple(Point(1.0, 0.7, label="just the same place", tip="tip") for _ in range(40))
    drawn = chart(Series("many", "colour1", points)).svg(NARROW)
    assert 0 < texts(drawn).count("just the same place") < 40


def test_numbers_of_an_axis_do_not_touch():
    ticks = tuple((float(place), f"{place}.00001") for place in range(30))
    crowded = chart(line())._replace(x=named("x", ["a"])._replace(low=0.0, high=29.0, ticks=ticks)).svg(NARROW)
    shown = [one for one in elements(crowded, "tick") if one.text and one.text.endswith(".00001")]
    assert 3 < len(shown) < 10


def test_long_names_below_an_axis_are_turned():
    drawn = str(chart(line(), names=("body.convolution1", "body.convolution2", "head")).svg(NARROW))
    assert drawn.count("rotate(-60)") == 3


def test_shades_have_words_once():
    panel = chart(line()).panels[0]
    shaded = chart(line())._replace(panels=(panel, panel), bands=(Band(0.0, 1.0, "strong", 2),))
    drawn = shaded.svg()
    assert texts(drawn).count("strong") == 1
    assert len(elements(drawn, "band")) == 2


def test_a_wide_figure_is_drawn_for_a_desk_and_for_a_phone():
    assert [name for name, _ in Figure("x", "X", chart(line()), wide=True).drawings] == ["broad", "slim"]
    assert [name for name, _ in Figure("x", "X", chart(line())).drawings] == ["any"]


def test_what_lies_beyond_an_axis_is_drawn_at_its_end():
    beyond = Series("far", "colour0", (Point(0.0, 99.0, -50.0, 99.0),))
    [whisker] = elements(chart(beyond).svg(), "whisker")
    assert {float(whisker.get("y1")), float(whisker.get("y2"))} == {26.0, 146.0}


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=9))
@example([5e-324])
@example([0.0, 5e-324])
def test_an_axis_has_room_for_all_values_and_few_numbers(values):
    made = scale("x", values)
    spare = 1e-6 * max(1.0, max(values) - min(values), *map(abs, values))
    assert made.low <= min(values) + spare
    assert made.high >= max(values) - spare
    assert 1 <= len(made.ticks) <= 9


@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=9))
def test_a_logarithmic_axis_has_powers_of_ten(values):
    made = scale("x", values, log=True)
    assert made.low <= min(values) * (1 + 1e-9)
    assert made.high >= max(values) * (1 - 1e-9)
    assert all(0 <= made.share(value) <= 1 for value in values)


@given(st.lists(st.floats(0, 200), max_size=8))
def test_spread_keeps_the_order_and_the_gap(places):
    moved = spread(sorted(places), 10, 0, 300)
    assert all(later - earlier >= 10 - 1e-9 for earlier, later in pairwise(moved))
