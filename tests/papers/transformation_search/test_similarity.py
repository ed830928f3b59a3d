from __future__ import annotations

from collections.abc import Callable

import pytest

from leaktight.papers import Check, Tables
from leaktight.papers.paper import Plans
from leaktight.papers.row import rows_where
from leaktight.papers.transformation_search.scales import Study
from leaktight.probes import SimilarityPath


def test_the_last_layer_must_be_alike(
    tables: Tables, find_check: Callable[..., Check], put: Callable[..., None]
) -> None:
    start = "Similarity(none) - similarity(hybrid), last layer"
    assert find_check(start).value == pytest.approx(0.0)
    put(rows_where(tables["similarity"], policy="hybrid", layer=3), "less_similar", 0.3)
    assert not find_check(start).holds


def test_one_attack_is_followed_layer_by_layer(plans: Plans, study: Study) -> None:
    probe = plans["cifar10-lenet-attacks"].probes["similarity"]
    assert isinstance(probe, SimilarityPath)
    assert probe.attack.iterations == study.path.iterations
    assert probe.attack.distance == "cosine"


def test_figure_6_numbers_layers_in_the_order_of_the_network(tables: Tables) -> None:
    rows = rows_where(tables["similarity"], policy="hybrid")
    assert [(row["layer"], row["name"], row["iterations"]) for row in rows] == [
        (layer, name, moment)
        for layer, name in enumerate(("body.conv1", "body.conv2", "head"), start=1)
        for moment in (0, 50)
    ]
    assert rows[1]["similarity"] == pytest.approx(0.1 + 0.5 - 6 / 20)
    assert [rows[1][f"less_similar{end}"] for end in ("", "_low", "_high")] == pytest.approx([6 / 20] * 3)
