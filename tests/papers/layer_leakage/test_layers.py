from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

from leaktight.core.task import Batch
from leaktight.learning import classification
from leaktight.learning.target_jacobian import target_norms
from leaktight.papers import Row, Tables
from leaktight.papers.layer_leakage.networks import NETWORKS
from leaktight.papers.row import number


def test_with_two_classes_sensitivity_is_how_evenly_a_gradient_is_spread() -> None:
    model = NETWORKS["AlexNet"].build((1, 16, 16), classes=2, seed=0)
    inputs = torch.rand(1, 1, 16, 16, generator=torch.Generator().manual_seed(0))
    found = target_norms(classification(model, (1, 16, 16), 2), model.tensors(), Batch(inputs, torch.tensor([1])))
    scores = model(inputs)
    F.cross_entropy(scores, torch.tensor([1])).backward()
    odds = (scores[0, 1] - scores[0, 0]).exp().item()
    for layer, norms in found.items():
        gradient = torch.cat(
            [tensor.grad.flatten() for tensor in model.get_submodule(layer).parameters() if tensor.grad is not None]
        )
        spread = gradient.square().mean().sqrt() / (gradient.max() - gradient.min())
        assert norms[0, 0].item() == pytest.approx((1 + odds**2) ** 0.5 * spread.item(), rel=1e-4)


def test_a_layer_has_attack_information_sensitivity_and_accuracy(tables: Tables, only: Callable[..., Row]) -> None:
    assert len(tables["layers"]) == 2 * (5 + 11 + 9)
    row = only("layers", task="gender", network="VGG11Net", layer=9)
    assert row["name"] == "linear1"
    assert number(row, "property_auc") == pytest.approx(0.906)
    assert number(row, "v_information") == pytest.approx(0.406)
    assert number(row, "v_information_share") == pytest.approx(0.812)
    assert number(row, "sensitivity") == pytest.approx(1.0)
    assert number(row, "accuracy") == pytest.approx(0.806)
    # Three seeds, a thousandth apart: Student's t with two degrees of freedom is 4.303.
    low, high = number(row, "property_auc_low"), number(row, "property_auc_high")
    assert low is not None
    assert high is not None
    assert high - low == pytest.approx(2 * 4.3027 * 0.001 / 3**0.5, rel=1e-3)
