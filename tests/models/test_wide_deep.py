"""Wide & Deep, with both parts at one party and for columns."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from leaktight.core.errors import InvalidValue
from leaktight.data import Columns
from leaktight.models import MLP, WideDeep

MIXED = Columns(("a", "x", "b", "y"), (0, 3, 0, 5))


def test_wide_and_deep_at_one_party_is_a_deep_network_plus_a_linear_model():
    model = WideDeep(hidden=(6, 4)).build((5,), classes=2, seed=0)
    rows = torch.randn(3, 5, generator=torch.Generator().manual_seed(0))
    deep, weight = model.body.deep(rows), model.head.weight
    assert torch.allclose(model(rows), deep @ weight[:, :4].T + rows @ weight[:, 4:].T + model.head.bias, atol=1e-6)


def test_the_default_is_the_paper_s_four_layers_of_128():
    deep, head = WideDeep().of_columns(Columns(("I", "C"), (0, 10)), classes=2)
    widths = [layer.out_features for layer in deep if isinstance(layer, nn.Linear)]
    assert widths == [128] * 4
    assert (deep.linear1.in_features, head.in_features) == (5, 128)


def test_networks_without_embeddings_refuse_ids():
    with pytest.raises(InvalidValue, match=r"mlp takes numbers. Got ids in the column `x` instead; use `wide_deep`"):
        MLP().of_columns(MIXED, classes=2)
