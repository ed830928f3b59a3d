from __future__ import annotations

from collections.abc import Callable

import pytest

from leaktight.papers import Check, Tables
from leaktight.papers.paper import Plans
from leaktight.papers.row import rows_where
from leaktight.papers.transformation_search.scales import Study
from leaktight.probes import AccuracyScore, LearningCurve


def test_accuracies_during_training_are_compared_at_the_same_moments(
    tables: Tables, find_check: Callable[..., Check], put: Callable[..., None]
) -> None:
    start = "Accuracy(none) - accuracy(hybrid), mean over moments"
    # Two moments alike, and the end, where the hybrid was answered with 0.006 more.
    assert find_check(start).value == pytest.approx(-0.006 / 3)
    put(rows_where(tables["training"], policy="hybrid", rounds=100), "accuracy_lost", 0.15)
    assert not find_check(start).holds


def test_accuracy_is_scored_on_the_untrained_model_and_measured_throughout_the_training(
    plans: Plans, study: Study
) -> None:
    untrained = plans["cifar10-lenet-untrained"]
    assert untrained.grid.stages == ("initial",)
    assert all(isinstance(probe, AccuracyScore) for probe in untrained.probes.values())
    # Ten batches.
    assert untrained.grid.seeds == tuple(range(5, 15))
    training = plans["cifar10-lenet-training"]
    assert (training.grid.stages, training.grid.batch_sizes) == (("training",), (study.batch_size,))
    assert training.grid.seeds == (5, 6, 7)
    assert [type(probe) for probe in training.probes.values()] == [LearningCurve]


def test_figure_3_has_moments_and_the_end(tables: Tables, study: Study) -> None:
    rows = rows_where(tables["training"], policy="hybrid")
    assert [row["rounds"] for row in rows] == [0, 100, 200, study.rounds_of(study.focus)]
    assert rows[1]["accuracy"] == pytest.approx(0.2)
    assert rows[1]["own_accuracy"] == pytest.approx(0.3)
    assert (rows[1]["loss"], rows[1]["own_loss"]) == (2.0, 3.0)
    assert rows[-1]["own_accuracy"] is rows[-1]["loss"] is None
    # A mean over seeds, which were answered with a hundredth more each; what is lost is the same under all of them.
    assert rows[-1]["accuracy"] == pytest.approx(0.5 + 0.006 + 0.06)
    assert [rows[-1][f"accuracy_lost{end}"] for end in ("", "_low", "_high")] == pytest.approx([-0.006] * 3)
