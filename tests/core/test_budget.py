"""Budgets: what is said of an epsilon, and that it is never said alone."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaktight.core.budget import Budget, budgets_of, other_notes

SAMPLED = {"dp_sgd.epsilon": 2.1342, "dp_sgd.delta": 1e-5, "dp_sgd.sample_rate": 0.08913}
ATTACKED = {"dp_sgd.attacked.epsilon": 4.377, "dp_sgd.attacked.delta": 1e-5, "dp_sgd.attacked.participations": 1.0}


def test_a_training_comes_before_what_only_an_audit_asked_for():
    first, second = budgets_of({**ATTACKED, **SAMPLED, "dp_sgd.clipped": 0.5})
    assert str(first) == "epsilon at most 2.13 at delta 1e-05 (upper bound; Poisson sampling at rate 0.0891)"
    assert str(second) == (
        "for the attacked messages alone, epsilon at most 4.38 at delta 1e-05 "
        "(upper bound; no amplification is claimed for batches that an audit fixed: an example counts once)"
    )
    assert (first.defence, second.defence) == ("dp_sgd", "dp_sgd")


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({"participations": 3.0}, "no amplification by sampling: an example counts 3 times)"),
        ({"participations": 64.0, "repeats": 8.0}, "an example counts 64 times, up to 8 times in one batch)"),
        ({"messages": 7.0}, "whole messages, 7 of one participant, so that no sampling is assumed)"),
        ({"sample_rate": 0.1, "participations": 2.0}, "Poisson sampling at rate 0.1; no amplification by sampling: an"),
    ],
)
def test_what_the_account_rests_on_is_said(told, said):
    notes = {"mine.epsilon": 1.0, "mine.delta": 1e-6, **{f"mine.{name}": value for name, value in told.items()}}
    [budget] = budgets_of(notes)
    assert str(budget).startswith("epsilon at most 1 at delta 1e-06 (upper bound; ")
    assert said in str(budget)
    assert other_notes({**notes, "mine.clipped": 0.5}) == {"mine.clipped": 0.5}


def test_an_infinite_epsilon_is_no_guarantee():
    assert str(Budget("dp_sgd", math.inf, 1e-5, "Poisson sampling at rate 0.1")) == (
        "epsilon is infinite at delta 1e-05 (Poisson sampling at rate 0.1): no guarantee"
    )


def test_a_defence_that_says_too_little_is_not_taken_at_its_word():
    [without] = budgets_of({"mine.epsilon": 2.5})
    assert str(without) == "an epsilon without its delta, which bounds nothing"
    [loose] = budgets_of({"mine.epsilon": 2.5, "mine.delta": 1e-5})
    assert "about 2.5 at delta 1e-05 (estimate; how examples were drawn was not noted)" in str(loose)
    [bare] = budgets_of({"epsilon": 2.5, "delta": 1e-5})
    assert "about 2.5" in str(bare)
    assert budgets_of({"dp_sgd.delta": 1e-5, "epsilon.other": 9.0}) == ()


@given(
    st.floats(0, allow_nan=False),
    st.none() | st.floats(1e-12, 0.9),
    st.dictionaries(st.sampled_from(["sample_rate", "participations", "repeats", "messages"]), st.floats(0.1, 1000)),
    st.sampled_from(["dp_sgd", "dp_sgd.attacked"]),
)
def test_no_number_is_ever_shown_alone(epsilon, delta, told, name):
    notes = {f"{name}.epsilon": epsilon, **{f"{name}.{part}": value for part, value in told.items()}}
    [budget] = budgets_of(notes if delta is None else {**notes, f"{name}.delta": delta})
    said = str(budget)
    if delta is None:
        assert not any(letter.isdigit() for letter in said)
    else:
        assert f"at delta {delta:g}" in said
        assert "upper bound" in said or "estimate" in said or "no guarantee" in said
        assert "sampling" in said or "amplification" in said or "how examples were drawn was not noted" in said
