"""Sealing orders: redundant layers go together, and noise comes last."""

from __future__ import annotations

import torch

from leaktight.core.random import stream
from leaktight.defences.sealing_order import sealing_order
from leaktight.statistics.auc import GUESSING

ROWS = 80


def _layers() -> tuple[dict[str, torch.Tensor], torch.Tensor, torch.Tensor]:
    """Return a layer that tells much, two that tell half of it each, and one of noise."""
    rng = stream(0, "layers")
    positive, halves = torch.arange(ROWS) % 2 == 0, torch.arange(ROWS) // 2 % 2
    sign = positive.double() * 2 - 1

    def layer(strength: float) -> torch.Tensor:
        return strength * sign[:, None] + torch.randn(ROWS, 6, generator=rng).double()

    return {"much": layer(2.0), "noise": layer(0.0), "some": layer(0.5), "less": layer(0.3)}, positive, halves


def test_the_order_leaves_least_for_every_count() -> None:
    features, positive, halves = _layers()
    order = sealing_order(features, positive, halves)
    assert [step.layer for step in order] == ["much", "some", "less", "noise"]
    assert order[-1].auc == GUESSING
    remaining = [step.auc for step in order]
    assert remaining == sorted(remaining, reverse=True)
    assert remaining[0] > 0.8 > 0.7 > remaining[2]


def test_a_layer_that_tells_most_does_not_come_first_where_others_tell_the_same() -> None:
    """Two layers tell everything: to protect one of them alone is worth nothing, so noise is opened first."""
    features, positive, halves = _layers()
    twins = {"noise": features["noise"], "one": features["much"], "other": features["much"] * 3}
    order = sealing_order(twins, positive, halves)
    assert order[-1].layer == "noise"
    assert order[0].auc > 0.95 > order[1].auc


def test_layers_of_constant_rows_tell_nothing() -> None:
    _, positive, halves = _layers()
    order = sealing_order({"flat": torch.ones(ROWS, 3), "zero": torch.zeros(ROWS, 2)}, positive, halves)
    assert {step.auc for step in order} == {GUESSING}
