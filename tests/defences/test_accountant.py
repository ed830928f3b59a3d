"""The accountant gives Opacus' numbers, and the known ones where there is a formula."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys

import numpy as np
import pytest
from opacus.accountants import RDPAccountant

from leaktight.defences.accountant import epsilon, orders, step_cost


def spent(*steps: tuple[float, float]) -> list[float]:
    return [sum(costs) for costs in zip(*(step_cost(rate, multiplier) for rate, multiplier in steps), strict=True)]


@pytest.mark.parametrize(("rate", "multiplier", "steps"), [(0.01, 1.1, 100), (0.5, 2.0, 3), (1.0, 4.0, 10), (0.1, 0.6, 1)])
def test_epsilon_agrees_with_opacus(rate: float, multiplier: float, steps: int) -> None:
    opacus = RDPAccountant()
    for _ in range(steps):
        opacus.step(noise_multiplier=multiplier, sample_rate=rate)
    assert epsilon(spent(*[(rate, multiplier)] * steps), 1e-5) == pytest.approx(opacus.get_epsilon(1e-5), rel=1e-9)


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
