"""Label bounds: the ceiling of an AUC, and what is left of a bound after more passes than it was stated for."""

from __future__ import annotations

import math

import pytest

from leaktight.core.errors import InvalidValue
from leaktight.core.label_bound import LabelBound


@pytest.mark.parametrize(("error", "ceiling"), [(0.5, 0.5), (0.4, 0.68), (0.3, 0.82), (0.0, 1.0)])
def test_the_ceiling_is_the_area_under_the_best_curve_that_the_distance_allows(error: float, ceiling: float) -> None:
    assert LabelBound(error).ceiling() == pytest.approx(ceiling)
    distance, steps = 1 - 2 * error, 100_000
    area = sum(min(1.0, (step + 0.5) / steps + distance) for step in range(steps)) / steps
    assert area == pytest.approx(ceiling, abs=1e-4)


def test_divergences_add_over_passes() -> None:
    bound = LabelBound(0.4)
    for passes in (1, 2, 10):
        divergence = passes * (2 - 4 * 0.4) ** 2
        assert bound.after(passes) == pytest.approx(0.5 - math.sqrt(divergence) / 4)
    assert bound.after(1000) == 0.0
    assert bound.ceiling(1000) == 1.0


def test_a_bound_over_passes_holds_there_and_is_tighter_before() -> None:
    bound = LabelBound(0.4, passes=20)
    assert bound.after(20) == pytest.approx(0.4)
    assert bound.ceiling() == bound.ceiling(20) == pytest.approx(0.68)
    assert 0.5 < bound.ceiling(1) < bound.ceiling(5) < 0.68 < bound.ceiling(40)


@pytest.mark.parametrize(("error", "passes"), [(-0.1, 1), (0.6, 1), (0.4, 0)])
def test_what_is_no_bound_is_said(error: float, passes: int) -> None:
    with pytest.raises(InvalidValue, match=r"an error in \[0, 0.5\] over at least 1 pass"):
        LabelBound(error, passes)
