import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leaktight.core.errors import InvalidValue
from leaktight.core.metric import Reading
from leaktight.statistics.pooling import high, leakage, leaks_more, low, minus, pool


def psnr(value, half=2.0, n=8, **more):
    return Reading(name="psnr", value=value, low=value - half, high=value + half, n=n, leaks="high", **more)


def test_one_seed_is_returned_as_it_is():
    reading = psnr(20.0, each=(19.0, 21.0))
    assert pool([reading]) is reading


def test_equal_seeds_narrow_the_interval_by_the_root_of_their_number():
    pooled = pool([psnr(20.0)] * 4)
    assert pooled.value == 20
    assert high(pooled) - 20 == pytest.approx(2 / math.sqrt(4))


def test_seeds_that_differ_more_than_their_intervals_widen_it():
    apart = pool([psnr(10.0), psnr(30.0)])
    within = math.sqrt(2) / 2 * 2
    between = 1.959964**2 * (200 - 4 / 1.959964**2) / 2
    assert high(apart) - apart.value == pytest.approx(math.sqrt(within**2 + between), rel=1e-4)


def test_larger_samples_weigh_more():
    assert pool([psnr(10.0, n=30), psnr(20.0, n=10)]).value == 12.5


def test_seeds_without_intervals_get_their_spread():
    pooled = pool([Reading(name="loss", value=value) for value in (1.0, 3.0)])
    assert high(pooled) - 2 == pytest.approx(1.959964 * math.sqrt(2) / math.sqrt(2), rel=1e-4)


def test_values_of_single_images_are_kept_together_and_chance_is_averaged():
    pooled = pool([psnr(10.0, each=(1.0, 2.0), chance=10.0), psnr(20.0, each=(3.0,), chance=12.0)])
    assert pooled.each == (1.0, 2.0, 3.0)
    assert pooled.chance == 11
    assert pool([psnr(10.0, chance=10.0), psnr(20.0)]).chance is None


def test_pooling_nothing_is_an_error():
    with pytest.raises(InvalidValue, match="at least one reading"):
        pool([])


shares = st.floats(0, 1)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(shares, shares, shares), min_size=1, max_size=5))
def test_a_pooled_share_stays_a_share_and_inside_its_interval(triples):
    readings = [
        Reading(name="accuracy", low=a, value=b, high=c, n=10, chance=0.1)
        for a, b, c in (sorted(triple) for triple in triples)
    ]
    pooled = pool(readings)
    assert -1e-12 <= low(pooled) <= pooled.value + 1e-12
    assert pooled.value - 1e-12 <= high(pooled) <= 1 + 1e-12


def test_a_pooled_loss_may_go_below_zero():
    losses = [Reading(name="accuracy_loss", value=v, low=0.0, high=0.9) for v in (0.0, 0.8)]
    assert low(pool(losses)) < 0


def test_leaks_more_needs_intervals_apart_and_knows_the_direction():
    assert leaks_more(psnr(30.0), psnr(25.0))
    assert not leaks_more(psnr(30.0), psnr(27.0))
    good, bad = (Reading(name="label_distance", value=v, leaks="low") for v in (0.1, 0.9))
    assert leaks_more(good, bad)
    assert not leaks_more(bad, good)
    assert leakage(good) > leakage(bad)


def test_the_difference_of_readings_without_interval_has_none():
    difference = minus(Reading(name="accuracy", value=0.8), Reading(name="accuracy", value=0.5), "accuracy_loss")
    assert difference.value == pytest.approx(0.3)
    assert difference.low is None
    assert difference.high is None


def test_uneven_intervals_cross_over_in_a_difference():
    one = Reading(name="a", value=0.5, low=0.4, high=0.5)
    other = Reading(name="a", value=0.2, low=0.2, high=0.3)
    difference = minus(one, other, "loss")
    assert low(difference) == pytest.approx(0.3 - math.hypot(0.1, 0.1))
    assert high(difference) == pytest.approx(0.3)
