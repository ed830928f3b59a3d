"""Gradient features: the pooling of the published code, worked out entry by entry; and that no layer is without any."""

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from leaktight.attacks.gradient_features import LARGE, pick_entries, pool_layers
from leaktight.models import MLP, FaceAlexNet, ResNet20, VGG11Net


def draw_rows(*shape, seed=0):
    return torch.randn(3, *shape, generator=torch.Generator().manual_seed(seed))


def test_a_kernel_is_pooled_over_its_positions():
    kernel = draw_rows(4, 2, 3, 3)
    rows = pool_layers({"conv.weight": kernel})["conv"]
    wanted = [
        [
            max(abs(kernel[m, o, i, y, x].item()) for y, x in itertools.product(range(3), range(3)))
            for o in range(4)
            for i in range(2)
        ]
        for m in range(3)
    ]
    assert rows.tolist() == wanted


def test_a_small_matrix_is_taken_as_it_is():
    weight = draw_rows(5, 7)
    assert torch.equal(pool_layers({"head.weight": weight})["head"], weight.abs().flatten(1))


def test_a_large_matrix_is_pooled_over_its_output_units():
    weight = draw_rows(51, 100)
    rows = pool_layers({"linear.weight": weight})["linear"]
    assert rows.shape == (3, 100)
    for message, unit in itertools.product(range(3), (0, 42, 99)):
        assert rows[message, unit] == max(abs(weight[message, output, unit]) for output in range(51))


@pytest.mark.parametrize(("outer", "width"), [(50, 50 * 100), (51, 100)])
def test_five_thousand_is_still_small(outer, width):
    assert LARGE == 5000
    assert pool_layers({"linear.weight": draw_rows(outer, 100)})["linear"].shape == (3, width)
    # A kernel of its own layer is never dropped: what is left is one number for each input.
    assert pool_layers({"conv.weight": draw_rows(outer, 100, 2, 2)})["conv"].shape == (3, width)


def test_a_kernel_that_would_be_dropped_keeps_what_is_largest_for_each_input():
    kernel = draw_rows(80, 70, 2, 2)
    rows = pool_layers({"conv.weight": kernel, "conv.bias": draw_rows(80)})["conv"]
    assert rows.shape == (3, 70)
    assert rows[1, 5] == kernel[1, :, 5].abs().max()


def test_a_large_kernel_is_dropped_where_its_layer_has_another():
    parts = {"cell.small": draw_rows(2, 3, 2, 2), "cell.large": draw_rows(80, 70, 2, 2)}
    assert torch.equal(pool_layers(parts)["cell"], pool_layers({"cell.small": parts["cell.small"]})["cell"])


def test_biases_are_dropped_unless_a_layer_sent_nothing_else():
    tensors = {
        "norm.weight": draw_rows(6),
        "norm.bias": draw_rows(6, seed=1),
        "odd.bias": draw_rows(4),
        "rnn.bias_ih": draw_rows(2),
    }
    found = pool_layers(tensors)
    assert torch.equal(found["norm"], tensors["norm.weight"].abs())
    assert torch.equal(found["odd"], tensors["odd.bias"].abs())
    assert torch.equal(found["rnn"], tensors["rnn.bias_ih"].abs())


def test_a_single_number_is_a_feature():
    assert pool_layers({"shift.scale": torch.tensor([-1.0, 2.0])})["shift"].tolist() == [[1.0], [2.0]]


@pytest.mark.parametrize("network", [MLP(), FaceAlexNet(), VGG11Net(), ResNet20()], ids=str)
def test_every_layer_of_a_network_has_features_in_its_order(network):
    model = network.build((3, 32, 32), classes=10, seed=0)
    tensors = {name: tensor[None].expand(2, *tensor.shape) for name, tensor in model.tensors().items()}
    found = pool_layers(tensors)
    assert list(found) == list(dict.fromkeys(name.rpartition(".")[0] for name in tensors))
    assert all(rows.dim() == 2 and len(rows) == 2 and rows.shape[1] for rows in found.values())


def test_what_is_withheld_is_not_there():
    tensors = {"one.weight": draw_rows(2, 3), "two.weight": draw_rows(3, 2)}
    assert list(pool_layers({"two.weight": tensors["two.weight"]})) == ["two"]


@given(st.lists(st.integers(1, 6), max_size=5), st.floats(-3, 3))
def test_features_know_sizes_and_no_signs(sizes, scale):
    tensor = draw_rows(*sizes)
    one, other = (pool_layers({"layer.weight": factor * tensor})["layer"] for factor in (1.0, scale))
    assert (one >= 0).all()
    assert torch.allclose(other, abs(scale) * one, atol=1e-6)


def test_picked_entries_are_the_same_for_all_messages_and_calls():
    tensors = {"one.weight": draw_rows(10, 20), "one.bias": draw_rows(10), "two.weight": draw_rows(5, 2, 3, 3)}
    found = pick_entries(tensors, 48, seed=7)
    assert {layer: tuple(rows.shape) for layer, rows in found.items()} == {"one": (3, 48), "two": (3, 48)}
    again = pick_entries({name: tensor[1:2] for name, tensor in tensors.items()}, 48, seed=7)
    assert all(torch.equal(found[layer][1:2], again[layer]) for layer in found)
    # Every number is one of the layer's entries, none of them twice, and none of the bias.
    whole = tensors["one.weight"][0].abs().flatten().tolist()
    assert set(found["one"][0].tolist()) <= set(whole)
    assert len(found["one"][0].unique()) == 48


def test_other_seeds_pick_other_entries_and_small_layers_give_all():
    tensors = {"one.weight": draw_rows(10, 20), "two.weight": draw_rows(4)}
    one, other = pick_entries(tensors, 48, seed=0), pick_entries(tensors, 48, seed=1)
    assert not torch.equal(one["one"], other["one"])
    assert sorted(one["two"][0].tolist()) == sorted(tensors["two.weight"][0].abs().tolist())
