from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaktight.core.metric import Reading
from leaktight.papers.comparison import difference, farthest, highest, lowest, mean_of, relative

ONE, OTHER = Reading(name="a", value=2.0, low=1.7, high=2.3), Reading(name="a", value=1.0, low=0.6, high=1.4)
BARE = Reading(name="a", value=1.0)


@st.composite
def readings(draw: st.DrawFn) -> Reading:
    low, value, high = sorted(draw(st.lists(st.floats(0.01, 100), min_size=3, max_size=3)))
    return Reading(name="a", value=value, low=low, high=high)


def ends(found: Reading | None) -> tuple[float, float]:
    assert found is not None
    assert found.low is not None
    assert found.high is not None
    return found.low, found.high


@given(readings(), readings())
def test_a_difference_is_surer_than_both_errors_at_once_and_less_sure_than_either(one: Reading, other: Reading) -> None:
    found = difference(one, other)
    low, high = ends(found)
    assert found is not None
    (one_low, one_high), (other_low, other_high) = ends(one), ends(other)
    tiny = 1e-9
    assert one_low - other_high - tiny <= low <= found.value + tiny
    assert found.value - tiny <= high <= one_high - other_low + tiny
    assert found.value - low >= max(one.value - one_low, other_high - other.value) - tiny


@given(readings(), readings())
def test_turned_round_a_difference_is_its_negative(one: Reading, other: Reading) -> None:
    low, high = ends(difference(one, other))
    assert ends(difference(other, one)) == pytest.approx((-high, -low))


def test_equal_errors_of_proportions_are_those_of_two_independent_ones() -> None:
    low, high = ends(
        difference(Reading(name="a", value=0.5, low=0.4, high=0.6), Reading(name="a", value=0.2, low=0.1, high=0.3))
    )
    assert (low, high) == pytest.approx((0.3 - 0.1 * math.sqrt(2), 0.3 + 0.1 * math.sqrt(2)))


@given(st.lists(readings(), min_size=1, max_size=5))
def test_a_mean_is_no_surer_than_its_parts(parts: list[Reading]) -> None:
    low, high = ends(mean_of(parts))
    assert high - low >= min(ends(part)[1] - ends(part)[0] for part in parts) - 1e-9


@given(readings(), readings())
def test_a_relative_difference_is_the_difference_of_logarithms(one: Reading, other: Reading) -> None:
    low, high = ends(relative(one, other))
    logs = [
        Reading(name="a", value=math.log(each.value), low=math.log(ends(each)[0]), high=math.log(ends(each)[1]))
        for each in (one, other)
    ]
    assert (math.log1p(low), math.log1p(high)) == pytest.approx(ends(difference(*logs)), abs=1e-6)
    assert ends(one)[0] / ends(other)[1] - 1 - 1e-6 <= low <= one.value / other.value - 1 + 1e-6


def test_what_lacks_an_interval_gives_a_number_without_one() -> None:
    for found in (difference(ONE, BARE), difference(BARE, ONE), relative(ONE, BARE), mean_of([ONE, BARE])):
        assert found is not None
        assert (found.low, found.high) == (None, None)
    assert relative(ONE, Reading(name="a", value=1.0, low=0.0, high=2.0)) == Reading(name="a", value=1.0)


def test_a_gap_is_never_a_number() -> None:
    assert difference(ONE, None) is None
    assert difference(None, ONE) is None
    assert relative(None, ONE) is None
    assert relative(ONE, Reading(name="a", value=0.0)) is None
    assert mean_of([]) is None
    assert mean_of([ONE, None]) is None
    for pick in (farthest, highest, lowest):
        assert pick([]) is pick([ONE, None]) is None


def test_the_farthest_keeps_its_sign_and_interval() -> None:
    found = Reading(name="a", value=-3.0, low=-4.0, high=-2.0)
    assert farthest([ONE, found, OTHER]) == found


def test_the_highest_and_the_lowest_are_by_value() -> None:
    below = Reading(name="a", value=-3.0)
    assert (highest([ONE, below, OTHER]), lowest([ONE, below, OTHER])) == (ONE, below)
