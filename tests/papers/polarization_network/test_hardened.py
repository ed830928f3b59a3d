from __future__ import annotations

from collections.abc import Callable

import pytest

from leaktight.papers import Check, Row, Tables
from leaktight.papers.row import rows_where


def test_the_curve_begins_at_polarization_as_published(tables: Tables, only: Callable[..., Row]) -> None:
    assert [(row["stage"], row["head_noise"]) for row in tables["hardened"]] == [
        (stage, noise) for stage in ("initial", "trained") for noise in (0.0, 0.5)
    ]
    plain, guarded = (only("hardened", stage="initial", head_noise=noise) for noise in (0.0, 0.5))
    assert (plain["label_reading"], guarded["label_reading"]) == (0.0, 0.4)
    assert (plain["head_features"], guarded["head_features"]) == (0.0, 0.5)
    assert plain["strongest_membership"] == 0.0
    assert guarded["ratio"] == 0.5


def test_labels_must_hide_at_a_bounded_price(tables: Tables, find_check: Callable[..., Check]) -> None:
    hidden = find_check("Labels hidden from every attack, head noise 0.5, trained network")
    assert (hidden.value, hidden.holds) == (0.4, True)
    start = "Accuracy(head guarded) - Accuracy(SPN), head noise 0.5"
    assert find_check(start).value == pytest.approx(0.0)
    for row in rows_where(tables["hardened"], head_noise=0.5):
        row |= {"accuracy": 0.5, "accuracy_low": 0.45, "accuracy_high": 0.55}
    for row in rows_where(tables["hardened"], head_noise=0.0):
        row |= {"accuracy": 0.8, "accuracy_low": 0.75, "accuracy_high": 0.85}
    assert not find_check(start).holds
