from __future__ import annotations

import pytest

from leaktight.papers import Tables
from leaktight.papers.row import rows_where


def test_definition_2_is_judged_for_each_policy_and_known_ones_by_each_attacker(tables: Tables) -> None:
    rows = rows_where(tables["privacy_aware"], policy="hybrid")
    assert [row["attack"] for row in rows] == ["Adam+Cosine", "strongest"]
    plain, each = rows
    # 60 images at 8 to 9.2 dB; the original is at most 12 where each outcome is tried, and half of them are below 11.5
    # there.
    assert (plain["images"], plain["hidden"], plain["hidden_original"]) == (60, 1.0, 1.0)
    assert (each["images"], each["hidden_original"]) == (60, 0.0)
    assert (each["hidden"], each["with_original"]) == (1.0, "does not hold")
    assert plain["accuracy_lost"] == pytest.approx(-0.006)
    [none] = rows_where(tables["privacy_aware"], policy="none")
    assert (none["hidden"], none["as_printed"]) == (0.0, "does not hold")
    assert (plain["epsilon"], plain["delta"], plain["gamma"]) == (10.0, 0.1, 0.02)
