"""Stages on some layers, and layers that do not come."""

from __future__ import annotations

import torch

from leaktight.channels.largest import KeepLargest
from leaktight.channels.layers import Drop, OnLayers
from leaktight.channels.noise import AddNoise
from leaktight.core.channel import Belief, Noise, push_all

TENSORS = {"body.weight": torch.ones(4), "mid.weight": torch.ones(2), "head.weight": torch.ones(6)}
HALF = KeepLargest(lambda entries: entries // 2)


def test_other_layers_stay_as_they_are_and_in_their_place() -> None:
    before = AddNoise(std=1.0).push(Belief(TENSORS, examples=3))
    after = OnLayers(("mid",), (AddNoise(std=2.0),)).push(before)
    assert list(after.means) == list(TENSORS)
    assert [after.noise_of(name) for name in TENSORS] == [Noise(1.0), Noise(5.0), Noise(1.0)]
    assert after.examples == 3


def test_inner_stages_see_their_layers_as_a_message_of_their_own() -> None:
    masks = OnLayers(("body", "head"), (HALF,)).push(Belief(TENSORS)).masks
    assert sorted(masks) == ["body.weight", "head.weight"]
    assert masks["head.weight"].group == ("body.weight", "head.weight")
    assert masks["head.weight"].count == 5


def test_layers_that_are_not_there_change_nothing() -> None:
    before = Belief(TENSORS)
    assert OnLayers(("tail",), (HALF,)).push(before) is before


def test_layers_may_be_left_out_inside() -> None:
    after = OnLayers(("mid",), (Drop(),)).push(HALF.push(Belief(TENSORS)))
    assert list(after.means) == ["body.weight", "head.weight"]
    assert after.masks["head.weight"].group == ("body.weight", "head.weight")
    assert after.masks["head.weight"].count == 0, "how many of them are among those that go out, nobody can say"


def test_all_may_be_left_out() -> None:
    assert not Drop().push(Belief(TENSORS)).means


def test_what_is_left_out_is_not_ranked_later() -> None:
    after = push_all((Drop(("head",)), HALF), Belief(TENSORS))
    assert after.masks["body.weight"].count == 3
