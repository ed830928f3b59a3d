"""The search for a crossing: it ends, on both sides of it, within the tolerance."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leaktight.defences.root import STEPS, crossing


@settings(max_examples=200, deadline=None)
@given(
    root=st.floats(1e-6, 1e6),
    bend=st.sampled_from([1 / 9, 1 / 3, 1.0, 3.0, 9.0]),
    below=st.floats(1e-3, 1.0),
    above=st.floats(1.0, 1e3),
)
def test_it_narrows_to_the_tolerance_on_both_sides(root: float, bend: float, below: float, above: float) -> None:
    low, high = crossing(
        lambda x: math.copysign(abs(x / root - 1) ** bend, x - root), root * below * 0.999, root * above * 1.001, 1e-11
    )
    assert low <= root <= high
    assert high - low <= 1.01e-11 * high


def test_smooth_functions_need_few_steps() -> None:
    calls = []
    crossing(lambda x: calls.append(x) or x**3 - 2, 0.0, 10.0, tolerance=1e-12)
    assert len(calls) < 20


@pytest.mark.parametrize(
    "function",
    [
        lambda x: -1.0 if x < 0.3 else 1.0,
        lambda x: -math.inf if x < 0.3 else math.inf,
        lambda x: -1e300 if x < 0.3 else 1e-300,
        lambda x: min(0.0, x - 0.3) if x < 0.5 else 1.0,
        lambda x: math.tan((x - 0.3) * 2),
    ],
)
def test_steps_poles_and_plateaus_do_not_stop_it(function) -> None:
    calls = []
    low, high = crossing(lambda x: calls.append(x) or function(x), 0.0, 1.0, tolerance=1e-10)
    assert len(calls) <= STEPS
    assert low - 1e-9 <= 0.5
    assert high + 1e-9 >= 0.3
    assert function(low) <= 0 <= function(high)


def test_a_zero_that_is_hit_is_both_ends() -> None:
    assert crossing(lambda x: x - 0.5, 0.0, 1.0, tolerance=1e-12) == (0.5, 0.5)
    assert crossing(lambda x: x, 0.0, 1.0, tolerance=1e-12) == (0.0, 0.0)
    assert crossing(lambda x: x - 1, 0.0, 1.0, tolerance=1e-12) == (1.0, 1.0)


def test_an_interval_without_numbers_inside_ends_at_once() -> None:
    high = math.nextafter(1.0, 2)
    assert crossing(lambda x: -1.0 if x <= 1 else 1.0, 1.0, high, tolerance=0.0) == (1.0, high)
