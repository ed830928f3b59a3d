from __future__ import annotations

from collections.abc import Callable

from leaktight.papers import Check, Tables
from leaktight.papers.class_keys.key_images import EXPERIMENT
from leaktight.papers.row import rows_where


def test_beyond_the_features_longer_keys_do_not_tell_a_generator_less(
    tables: Tables, find_check: Callable[..., Check]
) -> None:
    """The paper takes safety to grow with the length of keys; behind a fixed layer it does not."""
    for features in (84, 256, 512):
        found = find_check(
            f"Overlap of what two random keys tell a generator, 16,384 over 4,096 dimensions, {features}"
        )
        assert not found.holds
    assert find_check("Largest relative error of the theory").holds


def test_a_fall_by_the_root_of_the_length_would_hold(tables: Tables) -> None:
    rows = [{**row, "overlap": 1 / float(row["dimensions"] or 1) ** 0.5} for row in tables["key_images"]]
    assert all(check.holds for check in EXPERIMENT.checks(rows)[:3])
    assert not EXPERIMENT.checks(rows)[-1].holds
    [row] = rows_where(tables["key_images"], features=84, dimensions=128)
    assert row["effective_length"] == 84
