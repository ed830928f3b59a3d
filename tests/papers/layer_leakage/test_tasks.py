from __future__ import annotations

from collections.abc import Callable

import pytest

from leaktight.models import FaceAlexNet, VGG11Net
from leaktight.papers import Row, Tables
from leaktight.papers.layer_leakage.networks import convolutional
from leaktight.papers.layer_leakage.scales import Study
from leaktight.papers.paper import Plans
from leaktight.papers.row import number


def test_other_properties_have_one_network_and_other_tasks_those_with_convolutions(plans: Plans, study: Study) -> None:
    assert list(plans["lfw-glasses-age-senior-leak"].scenarios) == ["VGG11Net"]
    assert [getattr(one, "model", None) for one in plans["lfw-age-gender-male-model"].scenarios.values()] == [
        FaceAlexNet(),
        VGG11Net(),
    ]
    assert convolutional(study.networks) == ("AlexNet", "VGG11Net")


def test_tasks_are_all_of_them_on_networks_with_convolutions(tables: Tables, only: Callable[..., Row]) -> None:
    found = dict.fromkeys((row["task"], row["network"]) for row in tables["tasks"])
    assert list(found) == [
        (task, network) for task in ("gender", "glasses", "race", "hair", "age") for network in ("AlexNet", "VGG11Net")
    ]
    row = only("tasks", task="age", network="AlexNet", layer=5)
    assert (number(row, "share"), number(row, "accuracy")) == pytest.approx((0.09, 0.806))
