"""Networks cut in two: the same function, each half from a stream of its own."""

from __future__ import annotations

from collections import OrderedDict

import pytest
import torch
from torch import nn

from leaktight.core.draws import PublicSeed
from leaktight.core.errors import InvalidValue
from leaktight.data import Columns
from leaktight.models import MLP, VGG16, ConvNet, DLNet, Factory, LeNet, ResNet20, WideDeep, halves
from leaktight.models.halves import Top, feature_half, label_half

MIXED = Columns(("a", "x", "b", "y"), (0, 3, 0, 5))
CUTS = [
    (MLP(hidden=(9, 7, 5)), (1, 8, 8), ["", "linear1", "relu1", "relu2", "relu3"]),
    (LeNet(), (1, 16, 16), ["", "conv1", "tanh1", "pool1", "pool2", "flatten", "tanh3"]),
    (DLNet(width=3), (3, 16, 16), ["", "conv2", "sigmoid4", "flatten"]),
    (ConvNet(width=4), (1, 16, 16), ["", "relu3", "pool6"]),
    (ResNet20(), (3, 8, 8), [""]),
    (VGG16(width=2), (3, 8, 8), ["", "relu2_1"]),
]


@pytest.mark.parametrize(("network", "shape", "cut"), [(n, s, c) for n, s, cuts in CUTS for c in cuts], ids=str)
def test_a_cut_network_computes_what_the_whole_one_does(network, shape, cut):
    made = halves(network, shape, classes=3, root=PublicSeed(4), cut=cut)
    inputs = torch.rand(2, *shape, generator=torch.Generator().manual_seed(1))
    activations = made.bottom(inputs)
    assert tuple(activations.shape[1:]) == made.shape
    body, head = network.parts(shape, 3)
    layers = [*(body if isinstance(body, nn.Sequential) else [body])]
    for one, other in zip(layers, [*made.bottom, *made.top.deep.body], strict=True):
        one.load_state_dict(other.state_dict())
    head.load_state_dict(made.top.deep.head.state_dict())
    assert torch.allclose(made.top(activations, torch.zeros(2, 0)), head(body(inputs)), atol=1e-6)


@pytest.mark.parametrize("network", [MLP(hidden=(9, 7)), WideDeep(hidden=(9, 7))], ids=str)
def test_both_halves_follow_from_the_seed_and_leave_the_global_generator_alone(network):
    torch.manual_seed(5)
    state = torch.get_rng_state()
    columns = Columns.plain(6)
    made, again, other = (halves(network, columns, 2, PublicSeed(seed), cut="relu1", own=MIXED) for seed in (1, 1, 2))
    assert torch.equal(torch.get_rng_state(), state)
    for half in ("bottom", "top"):
        one, same, different = (dict(getattr(found, half).named_parameters()) for found in (made, again, other))
        assert all(torch.equal(one[name], same[name]) for name in one)
        drawn = [name for name in one if one[name].any()]
        assert not any(torch.equal(one[name], different[name]) for name in drawn)


def test_statistics_standardise_both_parties_rows():
    own = Columns(("c",), (0,))
    made = halves(
        MLP(hidden=(4,)),
        Columns.plain(2),
        2,
        PublicSeed(0),
        own=own,
        statistics=((1.0, 2.0), (2.0, 4.0)),
        own_statistics=((3.0,), (2.0,)),
    )
    assert next(iter(dict(made.bottom.named_children()))) == "normalise"
    with torch.no_grad():
        made.top.wide.linear.linear.weight.fill_(1.0)
        plain = halves(MLP(hidden=(4,)), Columns.plain(2), 2, PublicSeed(0))
        assert torch.allclose(made.bottom(torch.tensor([[3.0, 6.0]])), plain.bottom(torch.tensor([[1.0, 1.0]])))
    moved = made.top(torch.zeros(1, 4), torch.tensor([[5.0]])) - made.top(torch.zeros(1, 4), torch.tensor([[3.0]]))
    assert torch.allclose(moved, torch.ones(1, 2))


def test_a_top_without_a_wide_part_ignores_the_label_party_s_rows():
    top = Top(nn.Linear(3, 2))
    assert torch.equal(top(torch.ones(4, 3), torch.zeros(4, 0)), top.deep(torch.ones(4, 3)))


@pytest.mark.parametrize(
    ("network", "shape", "cut", "sentence"),
    [
        (MLP(hidden=(4,)), (6,), "rleu1", "Got 'rleu1' instead. Did you mean `relu1`?"),
        (MLP(hidden=(4,)), (6,), "flatten", "cut after `linear1`"),
        (
            MLP(hidden=()),
            (6,),
            "",
            "mlp must have a layer before its head that learns. Got none; give it a hidden layer",
        ),
        (LeNet(), (6,), "", "lenet needs images"),
    ],
)
def test_a_cut_that_cannot_be_made_is_said(network, shape, cut, sentence):
    with pytest.raises(InvalidValue) as error:
        halves(network, shape, 2, PublicSeed(0), cut=cut)
    assert sentence in str(error.value)


def test_columns_without_ids_need_no_wide_part():
    made = halves(MLP(hidden=(4,)), Columns.plain(3), 2, PublicSeed(0))
    assert made.top.wide is None


@pytest.mark.parametrize("half", ["feature", "label"])
def test_each_half_is_what_both_together_have(half):
    network, columns = WideDeep(hidden=(8, 4)), Columns(("a", "b"), (0, 5))
    made = halves(network, columns, 2, PublicSeed(3), cut="relu1", own=MIXED)
    bottom, shape = feature_half(network, columns, 2, PublicSeed(3), cut="relu1")
    top, same = label_half(network, columns, 2, PublicSeed(3), cut="relu1", own=MIXED)
    assert shape == same == made.shape == (8,)
    ours, theirs = (bottom, made.bottom) if half == "feature" else (top, made.top)
    assert ours.state_dict().keys() == theirs.state_dict().keys()
    assert all(torch.equal(tensor, theirs.state_dict()[name]) for name, tensor in ours.state_dict().items())


@pytest.mark.parametrize("cut", ["", "relu1"])
def test_the_shape_of_large_activations_is_known_without_computing_them(cut, monkeypatch):
    devices = []
    forward = nn.Conv2d.forward
    monkeypatch.setattr(nn.Conv2d, "forward", lambda self, x: devices.append(x.device.type) or forward(self, x))
    _, shape = label_half(ConvNet(width=2), (3, 160, 160), 2, PublicSeed(0), cut=cut)
    bottom, same = feature_half(ConvNet(width=2), (3, 160, 160), 2, PublicSeed(0), cut=cut)
    assert set(devices) == {"meta"}
    assert shape == same == tuple(bottom(torch.zeros(1, 3, 160, 160)).shape[1:])


class Counted(nn.Module):
    """A layer that looks at its numbers, which the meta device has none of."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(70_000, 3)

    def forward(self, inputs):
        return self.linear(inputs) + (inputs.sum().item() > 0)


def test_a_layer_that_looks_at_its_numbers_is_computed(monkeypatch):
    monkeypatch.setattr(MLP, "parts", lambda *_: (nn.Sequential(OrderedDict(counted=Counted())), nn.Linear(3, 2)))
    assert halves(MLP(), (70_000,), 2, PublicSeed(0)).shape == (3,)


def test_layers_in_training_mode_are_refused_in_a_sentence(tmp_path, monkeypatch):
    code = "from torch import nn\n\ndef net():\n    return nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Linear(3, 2))"
    (tmp_path / "my_split_net.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InvalidValue, match="must treat each example by itself, and layer `1` is in training mode"):
        halves(Factory(function="my_split_net:net"), (4,), 2, PublicSeed(0))
    evaluated = Factory(function="my_split_net:net", batch_norm="eval")
    assert halves(evaluated, (4,), 2, PublicSeed(0)).shape == (3,)
