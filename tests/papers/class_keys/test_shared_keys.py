from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from leaktight.papers import Check, Records, Tables
from leaktight.papers.class_keys import shared_keys
from leaktight.papers.class_keys.scales import Scope
from leaktight.papers.row import number


def test_a_shared_class_must_lie_between_its_keys_and_away_from_others(
    tables: Tables, find_check: Callable[..., Check]
) -> None:
    tables["shared_keys"][-1] |= {"mean_score": 0.6, "largest_other": 0.3}
    assert not find_check("Score of a class with each of its two keys").holds
    assert not find_check("Largest overlap of a shared class").holds


def test_two_keys_of_a_class_have_a_score_of_about_seven_tenths(scope: Scope) -> None:
    short, long = shared_keys.rows(scope, Records({}))
    assert long["mean_score"] == pytest.approx(math.sqrt(0.5), abs=0.02)
    assert (number(long, "largest_other") or 1) < (number(short, "largest_other") or 0)
    assert (number(long, "largest_score") or 0) >= (number(long, "mean_score") or 1)
