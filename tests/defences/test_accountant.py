"""The accountant gives the numbers of Opacus and of dp-accounting, and the known ones where there is a formula."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys

import numpy as np
import pytest
from opacus.accountants import RDPAccountant
from scipy.stats import norm

from leaktight.defences.accountant import epsilon, gaussian_epsilon, orders, participation_cost, step_cost


def spent(*steps: tuple[float, float]) -> list[float]:
    return [sum(costs) for costs in zip(*(step_cost(rate, multiplier) for rate, multiplier in steps), strict=True)]


@pytest.mark.parametrize(
    ("rate", "multiplier", "steps"), [(0.01, 1.1, 100), (0.5, 2.0, 3), (1.0, 4.0, 10), (0.1, 0.6, 1)]
)
def test_epsilon_agrees_with_opacus(rate: float, multiplier: float, steps: int) -> None:
    opacus = RDPAccountant()
    for _ in range(steps):
        opacus.step(noise_multiplier=multiplier, sample_rate=rate)
    assert epsilon(spent(*[(rate, multiplier)] * steps), 1e-5) == pytest.approx(opacus.get_epsilon(1e-5), rel=1e-9)


# By dp-accounting 0.6.0, which cannot be installed here: it wants attrs below 24. Each is
#   accountant.compose(SelfComposedDpEvent(PoissonSampledDpEvent(rate, GaussianDpEvent(multiplier)),
# steps)).get_epsilon(delta) without the sampling at rate 1; once with its RdpAccountant at our orders, and once with
# its PLDAccountant, which is nearly exact. At orders that are no whole numbers its RdpAccountant comes out a little
# higher than the integral that Opacus and we agree with.
DP_ACCOUNTING = [
    (0.01, 1.1, 100, 1e-5, 0.9560911044993916, 0.5497650958602305),
    (0.1, 1.0, 50, 1e-5, 5.88542727658131, 5.1482625932668755),
    (0.1, 1.3, 8, 1e-4, 1.5342890988193925, 1.207901225042726),
    (0.5, 2.0, 3, 1e-5, 2.465979472505843, 2.2056328532965397),
    (32 / 359, 1.0, 40, 1e-5, 4.865438504648409, 4.208822020499483),
    (1.0, 1.0, 1, 1e-5, 4.728507067217623, 4.37717810002493),
    (1.0, 1.0, 4, 1e-5, 10.725509696418232, 9.99725615024243),
    (1.0, 2.0, 10, 1e-6, 8.84687435850794, 8.306225053649792),
    (1.0, 1 / 32, 1, 1e-5, 669.2612600716533, 647.5379917011395),
]


@pytest.mark.parametrize(("rate", "multiplier", "steps", "delta", "renyi", "exact"), DP_ACCOUNTING)
def test_epsilon_agrees_with_dp_accounting(
    rate: float, multiplier: float, steps: int, delta: float, renyi: float, exact: float
) -> None:
    found = epsilon([steps * cost for cost in step_cost(rate, multiplier)], delta)
    assert found == pytest.approx(renyi, rel=1e-3)
    assert exact <= found <= renyi * (1 + 1e-9)
    if rate == 1:
        assert epsilon(participation_cost(steps, multiplier), delta) == pytest.approx(renyi, rel=1e-6)
        assert gaussian_epsilon(steps, multiplier, delta) == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize(("steps", "multiplier"), [(1, 0.3), (7, 2.0), (40, 10.0), (1, 10_000.0)])
@pytest.mark.parametrize("delta", [1e-9, 1e-5, 0.1])
def test_the_exact_epsilon_is_below_opacus_bound_and_solves_its_equation(
    steps: int, multiplier: float, delta: float
) -> None:
    opacus = RDPAccountant()
    for _ in range(steps):
        opacus.step(noise_multiplier=multiplier, sample_rate=1.0)
    found, mu = gaussian_epsilon(steps, multiplier, delta), math.sqrt(steps) / multiplier
    assert found <= max(0.0, float(opacus.get_epsilon(delta))) + 1e-12
    fails = norm.cdf(mu / 2 - found / mu) - math.exp(found) * norm.cdf(-mu / 2 - found / mu)
    assert fails == pytest.approx(delta, rel=1e-6) if found else fails <= delta


def test_an_example_that_is_there_m_times_costs_as_m_squared_steps() -> None:
    assert participation_cost(9, 2.0) == pytest.approx(step_cost(1.0, 2.0 / 3))
    assert set(participation_cost(0, 0.0)) == {0.0}
    assert set(participation_cost(1, 0.0)) == {math.inf}
    assert (gaussian_epsilon(0, 0.0, 1e-5), gaussian_epsilon(1, 0.0, 1e-5)) == (0.0, math.inf)


def test_mixed_steps_agree_with_opacus() -> None:
    steps = [(0.1, 1.0), (0.2, 1.0), (0.2, 1.0), (0.05, 3.0)]
    opacus = RDPAccountant()
    for rate, multiplier in steps:
        opacus.step(noise_multiplier=multiplier, sample_rate=rate)
    assert epsilon(spent(*steps), 1e-6) == pytest.approx(opacus.get_epsilon(1e-6), rel=1e-9)


def test_without_sampling_the_cost_is_that_of_the_gaussian_mechanism() -> None:
    assert step_cost(1.0, 3.0) == pytest.approx([order / 18 for order in orders()])


def test_sampling_never_costs_more_than_none() -> None:
    for rate, multiplier in itertools.product([1e-6, 0.01, 0.99], [0.3, 1.0, 10_000.0]):
        assert (np.array(step_cost(rate, multiplier)) <= np.array(step_cost(1.0, multiplier)) * (1 + 1e-6)).all()
        assert min(step_cost(rate, multiplier)) >= 0


def test_more_steps_more_noise_and_smaller_delta() -> None:
    assert epsilon(spent(*[(0.1, 1.0)] * 2), 1e-5) > epsilon(spent((0.1, 1.0)), 1e-5)
    assert epsilon(spent((0.1, 2.0)), 1e-5) < epsilon(spent((0.1, 1.0)), 1e-5)
    assert epsilon(spent((0.1, 1.0)), 1e-9) > epsilon(spent((0.1, 1.0)), 1e-5)


def test_no_noise_costs_everything() -> None:
    assert math.isinf(epsilon(spent((0.1, 0.0)), 1e-5))
    assert math.isinf(epsilon(spent((0.1, 1.0), (0.1, 0.0)), 1e-5))


def test_epsilon_is_never_negative() -> None:
    assert epsilon(spent((0.001, 100.0)), 0.9) == 0.0


def test_defences_do_not_import_opacus_before_they_need_it() -> None:
    code = "import sys, leaktight.defences; sys.exit('opacus' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
