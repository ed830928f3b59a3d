"""The solver of theorem 1: never beaten by brute force, always feasible, always finite, at any scale."""

from __future__ import annotations

import dataclasses
import math
import sys

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from leaktight.core.errors import InvalidValue
from leaktight.defences.divergence import Classes, ClassNoise, NoisePair, allowed_sumkl, detection_error, power, sumkl
from leaktight.defences.sumkl_solver import least, strongest

INSTANCES = 500
PLAIN = Classes(1.0, 2.0, 3.0, 4, 0.25)


def instance(rng: np.random.Generator, number: int) -> tuple[Classes, float]:
    """Return two classes over the whole range: half of them of one size, half with variances and gap of any size each."""
    if number % 2:
        u, v, g = 10 ** rng.uniform(-12, 4, 3)
    else:
        u, v, g = 10 ** rng.uniform(-12, 4) * 10 ** rng.uniform(-2, 2, 3)
    share = 1 / (1 + math.exp(rng.uniform(-math.log(999), math.log(999))))
    dimensions = round(10 ** rng.uniform(0, math.log10(4096)))
    return Classes(float(u), float(v), float(g), dimensions, share), float(g * 10 ** rng.uniform(-2, 2))


def brute_force(classes: Classes, budget: float, starts: list[np.ndarray]) -> float:
    """Return the least sumKL that SLSQP finds from many starts over all four eigenvalues, from the paper's own constraints.

    The unknowns are the parts of the budget that the eigenvalues take, in units of the largest size, and the goal is
    the logarithm: otherwise the reference is what fails. What it returns is pushed back to where the constraints hold.
    """
    unit = max(classes.negatives, classes.positives, classes.gap)
    u, v, g, budget = (size / unit for size in (classes.negatives, classes.positives, classes.gap, budget))
    others, p, q = classes.dimensions - 1, classes.share, 1 - classes.share
    count = max(others, 1)
    scale = np.array([budget / q, budget / (q * count), budget / p, budget / (p * count)])
    counted = np.array([1.0, float(others > 0), 1.0, float(others > 0)])

    def value(parts: np.ndarray) -> tuple[float, np.ndarray]:
        big_a, a, big_b, b = parts * scale + np.array([u, u, v, v])
        with np.errstate(all="ignore"):
            found = others * (a - b) ** 2 / (a * b) + (big_a - big_b) ** 2 / (big_a * big_b) + g / big_a + g / big_b
            slope = [1 / big_b - (big_b + g) / big_a**2, others * (1 / b - b / a**2)]
            slope += [1 / big_a - (big_a + g) / big_b**2, others * (1 / a - a / b**2)]
        if not np.isfinite(found) or found <= 0:
            return 700.0, np.zeros(4)
        return math.log(found / 2), np.array(slope) * scale / found

    rows = np.vstack([-counted, [1, -1 / count, 0, 0], [0, 0, 1, -1 / count]])
    limits = {"type": "ineq", "fun": lambda parts: rows @ parts + [1, 0, 0], "jac": lambda parts: rows}
    best = math.inf
    for start in starts:
        done = minimize(
            value, start, jac=True, method="SLSQP", bounds=[(0, 1)] * 4, constraints=[limits], options={"ftol": 1e-13}
        )
        parts = np.clip(done.x, 0, 1)
        parts[[1, 3]] = np.minimum(parts[[1, 3]], parts[[0, 2]] * count)
        best = min(best, math.exp(value(parts / max(1.0, parts @ counted))[0]))
    return best


def feasible(classes: Classes, noise: NoisePair, budget: float) -> bool:
    sizes = [size for one in (noise.negatives, noise.positives) for size in (one.along, one.across)]
    ordered = all(one.along >= one.across >= 0 for one in (noise.negatives, noise.positives))
    return all(map(math.isfinite, sizes)) and ordered and power(classes, noise) <= budget


def test_brute_force_never_finds_better_noise() -> None:
    rng = np.random.default_rng(0)
    ratios = []
    for number in range(INSTANCES):
        classes, budget = instance(rng, number)
        noise = strongest(classes, budget)
        assert feasible(classes, noise, budget)
        starts = [*rng.dirichlet(np.ones(4), 4), np.full(4, 0.25), np.array([0.49, 0.01, 0.49, 0.01])]
        ratios.append(sumkl(classes, noise) / brute_force(classes, budget, starts))
    assert max(ratios) <= 1 + 1e-6
    # A reference that is far off proves nothing.
    assert np.mean(np.array(ratios) > 1 - 1e-6) > 0.95


sizes = st.one_of(st.just(0.0), st.floats(-12, 4).map(lambda power: 10**power), st.floats(5e-324, 1e300))
shares = st.one_of(st.floats(0.001, 0.999), st.floats(1e-300, 1, exclude_max=True))
anything = st.builds(Classes, sizes, sizes, sizes, st.one_of(st.just(1), st.integers(1, 10**6)), shares)


@settings(max_examples=400, deadline=None)
@given(classes=anything, budget=sizes)
@example(classes=Classes(0.0, 5.900896757945379e199, 5.900896757945379e299, 3, 0.5), budget=5.900896757945379e199)
def test_any_numbers_give_feasible_finite_noise(classes: Classes, budget: float) -> None:
    noise = strongest(classes, budget)
    assert feasible(classes, noise, budget)
    # Where there is nothing to hide, what remains is the last digit of two equal variances, squared.
    rounding = 1e-24 if 0.001 <= classes.share <= 0.999 else 1e-12
    assert sumkl(classes, noise) <= sumkl(classes, NoisePair()) * (1 + 1e-12) + rounding


@settings(max_examples=200, deadline=None)
@given(classes=anything, bound=st.floats(1e-6, 0.4999))
def test_any_numbers_give_noise_that_meets_the_bound(classes: Classes, bound: float) -> None:
    sizes = [size for size in (classes.negatives, classes.positives, classes.gap) if size > 0]
    # Noise beyond the largest number, or below the smallest, is not there to be had; sizes 10^100 apart are beyond the
    # solver.
    assume(not sizes or (1e-250 < max(sizes) < 1e250 and max(sizes) < 1e90 * min(sizes)))
    noise = least(classes, allowed_sumkl(bound))
    assert feasible(classes, noise, math.inf)
    assert sumkl(classes, noise) <= allowed_sumkl(bound)


@pytest.mark.parametrize("budget", [5e-324, 1.5e-323, 1e-310, 1.0])
@pytest.mark.parametrize(
    "sizes", [(5e-324, 5e-324, 5e-324), (5e-324, 1.5e-323, 0.0), (0.0, 5e-324, 1e-320), (1e-310, 0.0, 1.0)]
)
@pytest.mark.parametrize("dimensions", [1, 3, 4096])
def test_numbers_without_digits_end_the_search(
    sizes: tuple[float, float, float], dimensions: int, budget: float
) -> None:
    for share in (0.001, 0.3, 0.999):
        classes = Classes(*sizes, dimensions, share)
        assert feasible(classes, strongest(classes, budget), budget)
        assert feasible(classes, least(classes, 0.16), math.inf)


close = st.floats(-12, 4).map(lambda power: 10**power)
ordinary = st.builds(Classes, close, close, close, st.integers(1, 4096), st.floats(0.001, 0.999))


@settings(max_examples=200, deadline=None)
@given(
    classes=ordinary,
    relative=st.floats(-2, 2),
    moves=st.lists(st.floats(-1, 1), min_size=4, max_size=4),
    step=st.floats(-6, 0),
)
def test_no_move_within_the_constraints_is_better(
    classes: Classes, relative: float, moves: list[float], step: float
) -> None:
    budget = classes.gap * 10**relative
    noise = strongest(classes, budget)
    d, p = classes.dimensions, classes.share
    weights = (1 - p, (1 - p) * (d - 1), p, p * (d - 1))
    old = (noise.negatives.along, noise.negatives.across, noise.positives.along, noise.positives.across)
    moved = [
        max(0.0, value + move * 10**step * budget / weight) if weight else 0.0
        for value, move, weight in zip(old, moves, weights, strict=True)
    ]
    moved[1], moved[3] = min(moved[0], moved[1]), min(moved[2], moved[3])
    spent = sum(weight * value for weight, value in zip(weights, moved, strict=True))
    moved = [value * min(1.0, budget / spent) if spent else value for value in moved]
    other = NoisePair(ClassNoise(moved[0], moved[1]), ClassNoise(moved[2], moved[3]))
    assert sumkl(classes, noise) <= sumkl(classes, other) * (1 + 1e-9)


@settings(max_examples=200, deadline=None)
@given(classes=ordinary, bound=st.floats(0.001, 0.499), off=st.one_of(st.none(), st.floats(-3, 3)))
def test_the_least_power_meets_the_bound_and_less_does_not(classes: Classes, bound: float, off: float | None) -> None:
    allowed = allowed_sumkl(bound)
    noise = least(classes, allowed)
    needed = power(classes, noise)
    assert sumkl(classes, noise) <= allowed
    assert detection_error(sumkl(classes, noise)) >= bound - 1e-12
    if needed == 0:
        assert sumkl(classes, NoisePair()) <= allowed
        return
    assert sumkl(classes, strongest(classes, 0.999 * needed)) > allowed
    if off is not None:
        warm = power(classes, least(classes, allowed, guess=needed * 10**off))
        assert warm == pytest.approx(needed, rel=1e-8)


@pytest.mark.parametrize("guess", [0.0, -1.0, math.inf, math.nan, 1e-320, 1e300])
def test_a_useless_guess_changes_nothing(guess: float) -> None:
    assert power(PLAIN, least(PLAIN, 0.16, guess)) == pytest.approx(power(PLAIN, least(PLAIN, 0.16)), rel=1e-9)


@settings(max_examples=100, deadline=None)
@given(classes=ordinary, relative=st.floats(-2, 2), factor=st.sampled_from([2.0**-300, 2.0**-40, 2.0**13, 2.0**300]))
def test_the_problem_has_no_scale(classes: Classes, relative: float, factor: float) -> None:
    budget = classes.gap * 10**relative
    larger = dataclasses.replace(
        classes, negatives=factor * classes.negatives, positives=factor * classes.positives, gap=factor * classes.gap
    )
    one, other = strongest(classes, budget), strongest(larger, factor * budget)
    assert other.negatives.along == pytest.approx(factor * one.negatives.along, rel=1e-9)
    assert other.positives.across == pytest.approx(factor * one.positives.across, rel=1e-9)
    assert sumkl(larger, other) == pytest.approx(sumkl(classes, one), rel=1e-9)


@settings(max_examples=100, deadline=None)
@given(classes=ordinary, relative=st.floats(-2, 2))
def test_swapping_the_classes_swaps_the_noise(classes: Classes, relative: float) -> None:
    assume(classes.negatives != classes.positives)
    budget = classes.gap * 10**relative
    swapped = dataclasses.replace(
        classes, negatives=classes.positives, positives=classes.negatives, share=1 - classes.share
    )
    assert sumkl(swapped, strongest(swapped, budget)) == pytest.approx(
        sumkl(classes, strongest(classes, budget)), rel=1e-9
    )


@settings(max_examples=100, deadline=None)
@given(classes=ordinary, relative=st.floats(-2, 2))
@example(classes=Classes(10**3.9921875, 10**3.9921875, 10 ** (-2.875), 1, 0.75), relative=0.0)
def test_the_remark_of_the_paper(classes: Classes, relative: float) -> None:
    """The power is spent, and the class of larger variance gets no noise across the difference."""
    budget = classes.gap * 10**relative
    noise = strongest(classes, budget)
    # Noise is the difference of two variances, each rounded.
    rounding = 4 * sys.float_info.epsilon * max(classes.negatives, classes.positives)
    assert power(classes, noise) == pytest.approx(budget, rel=1e-9, abs=rounding)
    larger = noise.negatives if classes.negatives > classes.positives else noise.positives
    assert larger.across == 0


@pytest.mark.parametrize("dimensions", [1, 2, 128])
@pytest.mark.parametrize("variance", [0.0, 0.7])
def test_equal_variances_and_shares_give_the_closed_form(dimensions: int, variance: float) -> None:
    classes = Classes(variance, variance, 2.0, dimensions, 0.5)
    noise = strongest(classes, 5.0)
    for one in (noise.negatives, noise.positives):
        assert (one.along, one.across) == (pytest.approx(5.0), 0.0)
    assert sumkl(classes, noise) == pytest.approx(2.0 / (5.0 + variance))


@pytest.mark.parametrize("share", [0.001, 0.1, 0.5, 0.9])
def test_two_points_are_hidden_by_the_closed_form(share: float) -> None:
    """Without spread the least sumKL at g / P = t is t / 2 + sqrt((1 + p t)(1 + (1 - p) t)) - 1."""
    classes = Classes(0.0, 0.0, 3.0, 64, share)
    for budget in (0.1, 1.0, 30.0):
        t = 3.0 / budget
        wanted = t / 2 + math.sqrt((1 + share * t) * (1 + (1 - share) * t)) - 1
        assert sumkl(classes, strongest(classes, budget)) == pytest.approx(wanted, rel=1e-9)


def test_endless_noise_hides_everything_and_none_nothing() -> None:
    assert strongest(PLAIN, 0.0) == NoisePair()
    divergences = [sumkl(PLAIN, strongest(PLAIN, 10.0**power)) for power in range(-3, 9)]
    assert divergences == sorted(divergences, reverse=True)
    assert detection_error(divergences[-1]) > 0.4999


def test_one_mean_needs_noise_only_up_to_the_other_variance() -> None:
    classes = Classes(1.0, 3.0, 0.0, 10, 0.3)
    noise = strongest(classes, 0.7 * 10 * 2.0)
    assert sumkl(classes, noise) == pytest.approx(0.0, abs=1e-12)
    assert noise.negatives.across == pytest.approx(2.0)
    assert power(classes, least(classes, 1e-6)) < 0.7 * 10 * 2.0


def test_nothing_to_hide_needs_no_noise() -> None:
    for classes in (Classes(0, 0, 0, 5, 0.5), Classes(2.0, 2.0, 0, 5, 0.1)):
        assert sumkl(classes, NoisePair()) == 0
        assert least(classes, 0.01) == NoisePair()
    alike = Classes(1.0, 1.0, 0.1, 5, 0.5)
    assert least(alike, allowed_sumkl(0.4)) == NoisePair()
    assert least(alike, allowed_sumkl(0.49)) != NoisePair()


@pytest.mark.parametrize(
    ("made", "sentence"),
    [
        (lambda: strongest(PLAIN, -1.0), r"The budget of noise must be in \[0, inf\). Got -1.0 instead."),
        (lambda: strongest(PLAIN, math.nan), r"The budget of noise must be in \[0, inf\). Got nan instead."),
        (
            lambda: least(PLAIN, 0.0),
            "The allowed sumKL must be above 0. Got 0.0 instead; ask for a detection error below one half.",
        ),
    ],
)
def test_wrong_numbers(made, sentence: str) -> None:
    with pytest.raises(InvalidValue, match=sentence):
        made()
