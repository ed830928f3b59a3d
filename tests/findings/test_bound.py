"""What an epsilon implies, against a test by brute force."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaktight.core.budget import Budget
from leaktight.findings.bound import TELLING, Bound, bound_of, largest_rate


def budget(epsilon, delta=1e-5, assumption="sampling", **more):
    return Budget("dp", epsilon, delta, assumption, **more)


@given(st.floats(0, 8), st.floats(0, 0.01), st.floats(0.001, 0.2))
def test_randomised_response_with_delta_reaches_the_bound_and_no_more(epsilon, delta, alpha):
    """The optimal test of (epsilon, delta) has the trade-off of these two lines: no point of it lies above the bound."""
    truth = (1 - delta) * math.exp(epsilon) / (1 + math.exp(epsilon))
    lie = (1 - delta) / (1 + math.exp(epsilon))
    # Reject on "surely there" (delta), then on the likelier answer, then on the other.
    first, second = min(1.0, alpha / lie), min(1.0, max(0.0, alpha - lie) / truth)
    power = min(1.0, delta + truth * first + lie * second)
    assert largest_rate(epsilon, delta, alpha) == pytest.approx(power, abs=1e-9)


@given(st.floats(0, 50), st.floats(0, 50))
def test_a_larger_epsilon_allows_no_less(one, other):
    assert (largest_rate(one, 1e-5) <= largest_rate(other, 1e-5)) or one > other


def test_what_guessing_gets_and_what_everything_is():
    assert largest_rate(0.0, 0.0) == pytest.approx(0.01)
    assert largest_rate(800.0, 0.0) == 1.0


@pytest.mark.parametrize("bad", [budget(math.inf), budget(1.0, None), budget(1.0, assumption="")])
def test_what_bounds_nothing_is_no_bound(bad):
    assert bound_of([bad], of_examples=True) is None
    assert bound_of([bad, budget(2.0)], of_examples=True).budget.epsilon == 2.0


def test_training_counts_before_attacked_messages_and_the_tightest_of_several():
    attacked = budget(0.5, attacked=True)
    assert bound_of([budget(3.0), budget(1.0), attacked], of_examples=True).budget.epsilon == 1.0
    assert bound_of([attacked], of_examples=True).budget.epsilon == 0.5


def test_only_whole_messages_bound_what_is_not_about_single_examples():
    assert bound_of([budget(1.0)], of_examples=False) is None
    assert bound_of([budget(1.0, whole_messages=True)], of_examples=False) is not None


@pytest.mark.parametrize(
    ("epsilon", "words"),
    [(1.0, "no attacker finds more than 2.7 %"), (3.0, "promises little."), (8.0, "promises next to nothing.")],
)
def test_what_it_implies_is_said(epsilon, words):
    bound = Bound(budget(epsilon), largest_rate(epsilon, 1e-5))
    assert words in str(bound)
    assert bound.is_telling == (bound.rate <= TELLING) == (epsilon == 1.0)
