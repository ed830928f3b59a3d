"""Trade-off: Definition 1, Eq. 1 and the axis of figure 5."""

import math
from statistics import NormalDist

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from leaktight.core.errors import InvalidValue
from leaktight.core.metric import Reading
from leaktight.metrics.tradeoff import (
    GREEN_BELOW,
    RED_ABOVE,
    Point,
    abscissa,
    calibrated_performance,
    cap,
    cap_interval,
    region,
)

shares, distances = st.floats(0, 1), st.floats(0, 3)


def point(accuracy, distance, wide=None, far=None):
    return Point(reading(accuracy, wide), reading(distance, far))


def reading(value, half=None):
    return Reading(
        name="any", value=value, low=None if half is None else value - half, high=None if half is None else value + half
    )


@given(st.lists(st.tuples(shares, distances), min_size=1, max_size=8))
def test_cap_is_the_mean_of_products(pairs):
    products = [calibrated_performance(*pair) for pair in pairs]
    found = cap([point(*pair) for pair in pairs])
    assert found == pytest.approx(sum(a * d for a, d in pairs) / len(pairs))
    assert min(products) - 1e-12 <= found <= max(products) + 1e-12


def test_a_perfect_defence_has_a_cap_of_one_and_a_useless_or_leaky_one_of_zero():
    assert cap([point(1, 1)] * 4) == 1
    assert cap([point(0, 1), point(0.9, 0)]) == 0


def test_no_points_have_no_cap():
    for function in (cap, cap_interval):
        with pytest.raises(InvalidValue, match=r"needs at least one point\. Got none instead"):
            function([])


@pytest.mark.parametrize(
    ("accuracy", "distance", "named"), [(1.2, 0, "accuracy"), (-0.1, 0, "accuracy"), (0.5, -1, "distance")]
)
def test_a_point_outside_its_range_is_refused(accuracy, distance, named):
    with pytest.raises(InvalidValue, match=f"The `{named}` of a Point must be a number in"):
        point(accuracy, distance)


def test_a_point_knows_its_strength_and_ratio():
    made = Point(reading(0.5), reading(0.4), strength=0.01, ratio=3.0)
    assert (made.strength, made.ratio) == (0.01, 3.0)
    assert (point(0.5, 0.4).strength, point(0.5, 0.4).ratio) == (None, None)


def test_without_every_interval_there_is_none():
    known, unknown = point(0.5, 0.4, 0.1, 0.1), point(0.5, 0.4, 0.1)
    assert cap_interval([known, unknown]) == (None, None)
    assert cap_interval([point(0.5, 0.4, None, 0.1)]) == (None, None)


@given(st.lists(st.tuples(shares, distances, st.floats(0, 0.5), st.floats(0, 1)), min_size=1, max_size=6))
def test_the_interval_holds_the_value_and_no_less_than_the_least_certain_factor(values):
    points = [point(*each) for each in values]
    low, high = cap_interval(points)
    assert 0 <= low <= cap(points) <= high
    assert high - cap(points) >= sum(a * far for a, _, _, far in values) / len(values) - 1e-12
    assert high - cap(points) >= sum(d * wide for _, d, wide, _ in values) / len(values) - 1e-12


def test_more_strengths_on_the_same_victims_do_not_make_it_more_certain():
    one = point(0.8, 0.5, 0.05, 0.1)
    assert cap_interval([one]) == pytest.approx(cap_interval([one] * 9))


def test_a_certain_factor_scales_the_interval_of_the_other():
    low, high = cap_interval([point(0.5, 1.0, 0.0, 0.2)])
    assert (low, high) == pytest.approx((0.4, 0.6))


def test_uneven_sides_stay_uneven():
    low, high = cap_interval([Point(reading(1.0, 0.0), Reading(name="rmse", value=0.5, low=0.4, high=0.9))])
    assert (low, high) == pytest.approx((0.4, 0.9))


@pytest.mark.parametrize("together", [True, False], ids=["same errors at all strengths", "independent errors"])
def test_the_interval_covers_at_least_as_often_as_it_says(together):
    rng, z = torch.Generator().manual_seed(0), NormalDist().inv_cdf(0.975)
    truth, spread = [(0.8, 0.2), (0.7, 0.6), (0.5, 0.9)], (0.03, 0.05)
    expected = sum(a * d for a, d in truth) / 3
    hits, draws = 0, 2000
    for _ in range(draws):
        errors = torch.randn(1 if together else 3, 2, generator=rng, dtype=torch.float64).expand(3, 2).tolist()
        points = [
            point(a + spread[0] * e[0], d + spread[1] * e[1], z * spread[0], z * spread[1])
            for (a, d), e in zip(truth, errors, strict=True)
        ]
        low, high = cap_interval(points)
        hits += low <= expected <= high
    assert hits / draws > (0.935 if together else 0.98)


def test_regions_are_the_paper_s():
    assert (GREEN_BELOW, RED_ABOVE) == (1.0, 10.0)
    ratios = [0, 0.999, 1, 5, 10, 10.001, 1e6, math.inf]
    assert [region(ratio) for ratio in ratios] == ["green", "green", "white", "white", "white", "red", "red", "red"]


@given(st.floats(0, 1e12), st.floats(0, 1e12))
def test_the_axis_keeps_the_order_of_ratios(one, other):
    assert abscissa(one) == pytest.approx(math.log10(one + 1))
    if one < other:
        assert abscissa(one) <= abscissa(other)


@pytest.mark.parametrize("function", [region, abscissa])
@pytest.mark.parametrize("ratio", [-1.0, math.nan])
def test_a_ratio_below_zero_is_refused(function, ratio):
    with pytest.raises(InvalidValue, match=r"must be a number in \[0, inf\]\. Got (-1\.0|nan) instead"):
        function(ratio)
