from __future__ import annotations

import pytest

from leaktight.core.metric import Reading
from leaktight.papers.check import Check, above, at_least, at_most, within


@pytest.mark.parametrize(
    ("check", "holds"),
    [
        (above("x", 0.1, 0), True),
        (above("x", 0.0, 0), False),
        (above("x", None, 0), False),
        (at_least("x", -0.01, -0.01), True),
        (at_most("x", 0.6, 0.6), True),
        (at_most("x", 0.61, 0.6), False),
        (at_most("x", None, 0.6), False),
        (at_least("x", -0.02, -0.01), False),
        (at_least("x", None, -0.01), False),
    ],
)
def test_a_check_holds_or_not_and_never_without_a_number(check: Check, holds: bool) -> None:
    assert check.holds is holds


@pytest.mark.parametrize(
    ("check", "holds", "undecided"),
    [
        (above("x", Reading(name="x", value=0.1, low=0.05, high=0.2), 0), True, False),
        (above("x", Reading(name="x", value=0.1, low=-0.05, high=0.2), 0), True, True),
        (above("x", Reading(name="x", value=-0.1, low=-0.2, high=-0.05), 0), False, False),
        (above("x", Reading(name="x", value=-0.1, low=-0.2, high=0.05), 0), False, True),
        (above("x", Reading(name="x", value=0.1), 0), True, False),
        (at_least("x", Reading(name="x", value=-0.005, low=-0.02, high=0.02), -0.01), True, True),
        (within("x", Reading(name="x", value=0.0, low=-0.2, high=0.2), 0.1), True, True),
        (within("x", Reading(name="x", value=0.0, low=-0.1, high=0.1), 0.1), True, False),
        (within("x", Reading(name="x", value=-0.3, low=-0.4, high=-0.2), 0.1), False, False),
        (within("x", 0.2, 0.1), False, False),
        (within("x", None, 0.1), False, False),
    ],
)
def test_a_check_is_undecided_where_its_interval_has_both(check: Check, holds: bool, undecided: bool) -> None:
    assert (check.holds, check.undecided) == (holds, undecided)


def test_a_check_of_before_intervals_is_still_read() -> None:
    old = Check.model_validate({"name": "x", "value": 1.0, "expected": "above 0", "holds": True})
    assert (old.low, old.high, old.undecided) == (None, None, False)


def test_without_a_number_nobody_says_that_a_claim_fails() -> None:
    words = [above("x", value, 0).word for value in (1.0, -1.0, None)]
    assert words == ["holds", "does not hold", "not measured"]
    assert above("x", Reading(name="x", value=0.1, low=-0.05, high=0.2), 0).word == "undecided"
