from __future__ import annotations

from collections.abc import Callable

import pytest

from leaktight.papers import Check, Tables
from leaktight.papers.paper import Plans
from leaktight.papers.row import rows_where
from leaktight.papers.transformation_search.mechanisms import three_policies
from leaktight.papers.transformation_search.points import score_label
from leaktight.papers.transformation_search.scales import Study
from leaktight.probes import PrivacyScore


def test_figure_1_has_the_whole_way_for_three_policies(tables: Tables, plans: Plans, study: Study) -> None:
    rows = tables["curve"]
    assert [(row["policy"], row["way"]) for row in rows] == [
        (policy, way) for policy in ("none", "random", "hybrid") for way in (0.0, 0.5, 1.0)
    ]
    probes = plans["cifar10-lenet-scores"].probes
    for policy in (None, *three_policies(study).values()):
        probe = probes[score_label(policy)]
        assert isinstance(probe, PrivacyScore)
        assert probe.curve


def test_the_curves_are_compared_halfway(
    tables: Tables, find_check: Callable[..., Check], put: Callable[..., None]
) -> None:
    start = "Similarity(none) - similarity(hybrid), halfway"
    assert find_check(start).value == pytest.approx(0.0)
    put(rows_where(tables["curve"], policy="hybrid", way=0.5), "less_similar", 0.3)
    assert find_check(start).value == pytest.approx(0.3)
    assert find_check(start).holds
