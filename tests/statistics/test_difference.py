import math

import pytest

from leaktight.core.metric import Reading
from leaktight.statistics import minus


def test_the_difference_of_readings_without_interval_has_none():
    difference = minus(Reading(name="accuracy", value=0.8), Reading(name="accuracy", value=0.5), "accuracy_loss")
    assert difference.value == pytest.approx(0.3)
    assert difference.low is None
    assert difference.high is None


def test_uneven_intervals_cross_over_in_a_difference():
    one = Reading(name="a", value=0.5, low=0.4, high=0.5)
    other = Reading(name="a", value=0.2, low=0.2, high=0.3)
    difference = minus(one, other, "loss")
    assert difference.low == pytest.approx(0.3 - math.hypot(0.1, 0.1))
    assert difference.high == pytest.approx(0.3)
