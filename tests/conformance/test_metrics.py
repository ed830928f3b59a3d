"""Every installed metric keeps the promises of its family."""

from __future__ import annotations

import pytest

from leaktight.core.metric import Metric
from leaktight.testing.conformance import installed_classes, sample
from leaktight.testing.metrics import Trial, check_metric, reconstruction_trial

METRICS = [
    pytest.param(made, sample(made), id=repr(sample(made) or made)) for made in installed_classes("metric").values()
]


@pytest.fixture(scope="module")
def trial() -> Trial:
    return reconstruction_trial()


@pytest.mark.parametrize(("made", "metric"), METRICS)
def test_the_metric_conforms(made: type[Metric], metric: Metric | None, trial: Trial) -> None:
    if metric is None:
        pytest.skip(f"{made.__name__} has settings without a default; its own test calls check_metric")
    if metric.claim not in ("inputs", "labels"):
        pytest.skip(f"{made.__name__} grades {metric.claim}; its own test calls check_metric with a trial of that kind")
    check_metric(metric, trial)
