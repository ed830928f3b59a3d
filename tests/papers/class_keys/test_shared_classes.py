from __future__ import annotations

from collections.abc import Callable

from leaktight.data import ByClass
from leaktight.learning import Federated
from leaktight.papers import Check, Tables
from leaktight.papers.class_keys.shared_classes import overlapping_classes
from leaktight.papers.paper import Plans
from leaktight.papers.row import rows_where


def test_keys_must_keep_the_accuracy_where_classes_are_shared(tables: Tables, find_check: Callable[..., Check]) -> None:
    start = "Accuracy(keys of 4,096) / accuracy(plain), shared classes"
    assert find_check(start).holds
    row = rows_where(tables["shared_classes"], framework="keys of 4,096")[0]
    row |= {"of_plain": 0.96, "of_plain_low": None, "of_plain_high": None}
    assert not find_check(start).holds


def test_classes_are_shared_in_part(plans: Plans, scenario: Callable[..., Federated]) -> None:
    one, other = overlapping_classes(10)
    assert set(one) & set(other) == {3, 4, 5, 6}
    assert scenario(plans, "digits-shared").partition == ByClass(owned=(one, other))
