"""What a feature party makes of a gradient at the cut, layer by layer, against one backward pass per example."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from leaktight.core.draws import PublicSeed
from leaktight.data import RareDigit
from leaktight.learning import layer_gradients
from leaktight.models import MLP, ConvNet, DLNet, WideDeep, halves


def values(module: nn.Module) -> dict[str, torch.Tensor]:
    return {name: parameter.detach().clone() for name, parameter in module.named_parameters()}


def by_hand(bottom: nn.Module, inputs: torch.Tensor, gradient: torch.Tensor) -> dict[str, torch.Tensor]:
    """Run example by example, catch each layer's output by a hook and differentiate with respect to it."""
    found: dict[str, list[torch.Tensor]] = {}
    for row, wanted in zip(inputs, gradient, strict=True):
        caught: dict[str, torch.Tensor] = {}
        hooks = [
            layer.register_forward_hook(lambda _, __, output, name=name, caught=caught: caught.update({name: output}))
            for name, layer in bottom.named_children()
        ]
        output = bottom(row[None])
        for hook in hooks:
            hook.remove()
        for name, tensor in caught.items():
            if tensor.requires_grad:
                found.setdefault(name, []).append(
                    torch.autograd.grad(output, tensor, wanted[None], retain_graph=True)[0]
                )
    return {name: torch.cat(rows) for name, rows in found.items()}


LEVELS = RareDigit(form="levels").load()
CASES = [
    (
        halves(MLP(hidden=(9, 7)), (64,), 2, PublicSeed(0), statistics=((0.5,) * 64, (2.0,) * 64)),
        RareDigit().load().train.inputs,
    ),
    (halves(WideDeep(hidden=(9, 7)), LEVELS.columns, 2, PublicSeed(0)), LEVELS.train.inputs),
    (halves(DLNet(width=3), (1, 8, 8), 2, PublicSeed(0), cut="sigmoid3"), RareDigit(form="image").load().train.inputs),
    (
        halves(ConvNet(width=4), (1, 12, 12), 2, PublicSeed(0), cut="pool6"),
        torch.rand(9, 1, 12, 12, generator=torch.Generator().manual_seed(1)),
    ),
]


@pytest.mark.parametrize(("made", "rows"), CASES, ids=["mlp", "wide and deep", "dlnet", "convnet"])
def test_each_layer_s_gradients_are_those_of_one_example_at_a_time(made, rows):
    inputs = rows[:5]
    gradient = torch.randn(5, *made.shape, generator=torch.Generator().manual_seed(0))
    blank = copy.deepcopy(made.bottom)
    for parameter in blank.parameters():
        parameter.data.zero_()
    found = layer_gradients(blank, values(made.bottom), inputs, gradient)
    expected = by_hand(made.bottom, inputs, gradient)
    assert list(found) == list(expected)
    for name in expected:
        assert torch.allclose(found[name], expected[name], atol=1e-5), name
    assert torch.equal(list(found.values())[-1], gradient)
    assert not any(parameter.any() or parameter.grad is not None for parameter in blank.parameters())


def test_layers_that_nothing_is_learned_before_are_left_out():
    made = CASES[0][0]
    found = layer_gradients(made.bottom, values(made.bottom), torch.rand(3, 64), torch.ones(3, 7))
    assert list(found) == ["linear1", "relu1", "linear2", "relu2"]


def test_a_bottom_that_is_no_sequence_has_its_cut_alone():
    bottom = nn.Linear(3, 2)
    found = layer_gradients(bottom, values(bottom), torch.ones(4, 3), torch.ones(4, 2))
    assert list(found) == ["cut"]
    assert torch.equal(found["cut"], torch.ones(4, 2))


def test_it_works_where_gradients_are_switched_off():
    made = CASES[0][0]
    with torch.no_grad():
        found = layer_gradients(made.bottom, values(made.bottom), torch.rand(3, 64), torch.ones(3, 7))
    assert not any(tensor.requires_grad for tensor in found.values())
