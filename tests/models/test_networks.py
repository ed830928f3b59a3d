"""Every network: shapes, seeds, and the double differentiation that attacks need."""

import re

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.func import functional_call, grad, vmap

from leaktight.core import registry
from leaktight.core.errors import InvalidValue
from leaktight.models import (
    MLP,
    VGG16,
    AlexNet,
    ConvNet,
    DeepDLNet,
    DLNet,
    FaceAlexNet,
    Factory,
    FCNet,
    LeNet,
    Network,
    ResNet10,
    ResNet20,
    VGG11Net,
    WideDeep,
)

TINY = [
    DLNet(width=3),
    DLNet(width=3, activation="tanh", initial="default"),
    DeepDLNet(width=3),
    DeepDLNet(depth=2, width=3, bound=0.5),
    LeNet(),
    LeNet(activation="relu"),
    LeNet(norm="instance", channels=(4, 5), linear=(9, 7)),
    MLP(hidden=(7, 5)),
    MLP(hidden=(7,), activation="gelu"),
    MLP(hidden=()),
    ConvNet(width=2),
    ConvNet(width=2, norm="batch"),
    ConvNet(width=1, norm="none", initial="default"),
    ResNet10(width=2),
    ResNet10(width=2, norm="instance", end="tanh"),
    ResNet20(),
    ResNet20(norm="batch"),
    ResNet20(norm="none"),
    AlexNet(width=2),
    VGG16(width=2),
    FaceAlexNet(),
    VGG11Net(),
    FCNet(),
    FCNet(depth=2, width=5),
    WideDeep(hidden=(7, 5)),
    Factory(function="leaktight.models.factory:example"),
]
SHAPES = [(1, 28, 28), (3, 32, 32), (3, 33, 40)]


def weights(network, seed, shape=(3, 32, 32), classes=10):
    return network.build(shape, classes, seed).tensors()


def test_every_registered_network_is_tried_here():
    ours = {kind for kind, made in registry.classes("model").items() if made.__module__.startswith("leaktight.models.")}
    # A network in memory is what a program has; it is tried in a file of its own.
    assert ours - {"in_memory"} == {network.kind for network in TINY}


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("network", TINY, ids=str)
def test_outputs_are_scores_and_features_fit_the_head(network, shape):
    model = network.build(shape, classes=4, seed=0)
    inputs = torch.rand(2, *shape)
    features = model.features(inputs)
    assert model(inputs).shape == (2, 4)
    assert features.shape == (2, model.head.in_features)
    assert torch.equal(model.head(features), model(inputs))
    assert model.head.bias is not None


@pytest.mark.parametrize("network", TINY, ids=str)
def test_weights_follow_from_the_seed_alone_and_the_global_generator_is_untouched(network):
    torch.manual_seed(3)
    state = torch.get_rng_state()
    first = weights(network, seed=1)
    assert torch.equal(torch.get_rng_state(), state)
    torch.rand(5)
    again, other = weights(network, seed=1), weights(network, seed=2)
    assert first.keys() == again.keys() == other.keys()
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first["head.weight"], other["head.weight"])


@pytest.mark.parametrize("network", TINY, ids=str)
def test_a_network_survives_json(network):
    assert Network.model_validate(network.to_dict()) == network


def steps(model, start, inputs, labels, count, rate=0.1):
    """Return ||change||^2 of the parameters after some local steps: what an attack on an update differentiates."""
    parameters = start
    for _ in range(count):
        gradients = grad(lambda p: F.cross_entropy(functional_call(model, p, (inputs,)), labels))(parameters)
        parameters = {name: parameters[name] - rate * gradients[name] for name in parameters}
    return sum(((parameters[name] - start[name]) / rate).square().sum() for name in start)


def steps_plainly(model, start, inputs, labels, count, rate=0.1):
    """Compute the same for one victim with ordinary autograd."""
    parameters = {name: tensor.clone().requires_grad_() for name, tensor in start.items()}
    for _ in range(count):
        loss = F.cross_entropy(functional_call(model, parameters, (inputs,)), labels)
        gradients = torch.autograd.grad(loss, list(parameters.values()), create_graph=True)
        parameters = {
            name: tensor - rate * gradient
            for (name, tensor), gradient in zip(parameters.items(), gradients, strict=True)
        }
    return sum(((parameters[name] - start[name]) / rate).square().sum() for name in start)


@pytest.mark.parametrize("network", TINY, ids=str)
@pytest.mark.parametrize("count", [1, 2], ids=["gradient", "update"])
def test_the_gradient_of_a_gradient_under_vmap_is_each_victims_own(network, count):
    shape = (3, 16, 16)
    model = network.build(shape, classes=3, seed=0).double()
    start = model.tensors()
    inputs = torch.rand(2, 2, *shape, generator=torch.Generator().manual_seed(0), dtype=torch.double)
    labels = torch.tensor([2, 0])
    batched = vmap(grad(lambda x: steps(model, start, x, labels, count)))(inputs)
    for victim in range(2):
        alone = inputs[victim].clone().requires_grad_()
        (expected,) = torch.autograd.grad(steps_plainly(model, start, alone, labels, count), alone)
        assert expected.abs().max() > 0
        torch.testing.assert_close(batched[victim], expected, rtol=1e-6, atol=1e-9 * expected.abs().max().item())


@pytest.mark.parametrize("network", TINY, ids=str)
def test_an_examples_output_is_its_own_in_either_mode(network):
    model = network.build((3, 16, 16), classes=3, seed=0)
    inputs = torch.rand(4, 3, 16, 16)
    for mode in (True, False):
        model.train(mode)
        before = {name: buffer.clone() for name, buffer in model.named_buffers()}
        torch.testing.assert_close(model(inputs)[:1], model(inputs[:1]), rtol=1e-3, atol=1e-5)
        assert all(torch.equal(buffer, before[name]) for name, buffer in model.named_buffers())


@pytest.mark.parametrize("network", TINY, ids=str)
def test_no_layer_works_in_place_or_by_chance(network):
    layers = list(network.build((3, 32, 32), classes=3, seed=0).modules())
    assert not [layer for layer in layers if getattr(layer, "inplace", False)]
    assert not [layer for layer in layers if isinstance(layer, nn.Dropout)]


def test_statistics_are_applied_before_the_body():
    mean, std = (0.5, 0.4, 0.3), (0.2, 0.1, 0.3)
    plain = MLP().build((3, 4, 4), 3, seed=0)
    scaled = MLP().build((3, 4, 4), 3, seed=0, statistics=(mean, std))
    inputs = torch.rand(2, 3, 4, 4)
    by_hand = torch.stack([(inputs[:, c] - mean[c]) / std[c] for c in range(3)], 1)
    torch.testing.assert_close(scaled(inputs), plain(by_hand))
    assert "normalise.mean" not in scaled.tensors()


@pytest.mark.parametrize(
    ("network", "shape", "sentence"),
    [
        (
            DLNet(),
            (64,),
            "dlnet needs images of shape (channels, height, width). Got shape (64,) instead; `mlp` takes any shape.",
        ),
        (LeNet(), (1, 8, 8), "lenet needs images of at least 12x12 pixels. Got 8x8 instead;"),
        (ConvNet(), (1, 8, 28), "convnet needs images of at least 9x9 pixels. Got 8x28 instead;"),
        (ResNet20(), (1, 3, 3), "resnet20 needs images of at least 4x4 pixels."),
        (AlexNet(), (3, 7, 7), "alexnet needs images of at least 8x8 pixels."),
        (VGG16(), (3, 7, 7), "vgg16 needs images of at least 8x8 pixels."),
        (FaceAlexNet(), (3, 62, 7), "face_alexnet needs images of at least 8x8 pixels. Got 62x7 instead;"),
        (VGG11Net(), (20,), "vgg11net needs images of shape (channels, height, width). Got shape (20,) instead;"),
        (MLP(), (), "The shape of an example for mlp must have positive sizes. Got () instead."),
        (MLP(), (3, 0), "The shape of an example for mlp must have positive sizes. Got (3, 0) instead."),
    ],
    ids=lambda value: str(value),
)
def test_a_shape_that_does_not_fit_is_one_sentence(network, shape, sentence):
    with pytest.raises(InvalidValue, match=re.escape(sentence)):
        network.build(shape, 10, seed=0)


def test_one_class_is_refused():
    with pytest.raises(InvalidValue, match=r"The number of classes for mlp must be at least 2\. Got 1 instead\."):
        MLP().build((4,), 1, seed=0)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: DLNet(bound=0), "The `bound` of dlnet must be above 0. Got 0 instead."),
        (lambda: DeepDLNet(depth=1), "The `depth` of deep_dlnet must be at least 2. Got 1 instead."),
        (lambda: DeepDLNet(bound=0), "The `bound` of deep_dlnet must be above 0. Got 0 instead."),
        (lambda: ConvNet(width=0), "The `width` of convnet must be at least 1. Got 0 instead."),
        (
            lambda: ConvNet(norm="layer"),
            "The `norm` of convnet must be one of 'group', 'instance', 'batch', 'running' or 'none'. Got 'layer' instead.",
        ),
        (lambda: FCNet(depth=1), "The `depth` of fcnet must be at least 2. Got 1 instead."),
        (lambda: FCNet(width=0), "The `width` of fcnet must be at least 1. Got 0 instead."),
        (lambda: MLP(hidden=(3, 0)), "The `hidden.1` of mlp must be at least 1. Got 0 instead."),
        (
            lambda: LeNet(activation="swish"),
            "The `activation` of lenet must be one of 'sigmoid', 'tanh', 'relu' or 'gelu'.",
        ),
        (lambda: ResNet20(widht=2), "resnet20 has no setting `widht`. Did you mean `width`?"),
    ],
)
def test_a_wrong_setting_is_one_sentence(make, sentence):
    with pytest.raises(InvalidValue, match=re.escape(sentence)):
        make()


def test_with_four_convolutions_the_deep_network_is_dlnet():
    deep, plain = (network.build((3, 32, 32), 5, seed=2) for network in (DeepDLNet(depth=4), DLNet()))
    assert all(torch.equal(deep.tensors()[name], tensor) for name, tensor in plain.tensors().items())
    inputs = torch.rand(2, 3, 32, 32)
    assert torch.equal(deep(inputs), plain(inputs))


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 4), st.integers(12, 40), st.integers(12, 40), st.integers(2, 7))
def test_any_size_and_number_of_channels_fits(channels, height, width, classes):
    small = (DLNet(width=2), LeNet(), MLP(hidden=(3,)), ConvNet(width=1), AlexNet(width=1), VGG16(width=1))
    for network in small:
        outputs = network.build((channels, height, width), classes, seed=0)(torch.rand(1, channels, height, width))
        assert outputs.shape == (1, classes)
        assert torch.isfinite(outputs).all()


@pytest.mark.parametrize("network", TINY, ids=str)
@pytest.mark.parametrize("shape", SHAPES)
def test_the_size_is_known_without_memory(network, shape):
    before = torch.random.get_rng_state()
    size = network.size(shape, 7)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert size == sum(parameter.numel() for parameter in network.build(shape, 7, seed=0).parameters())


def needs_numbers(shape, classes):
    scale = torch.ones(1).item()
    return nn.Sequential(nn.Flatten(), nn.Linear(shape[0] * shape[1] * shape[2] * int(scale), classes))


def test_the_size_of_a_function_that_needs_numbers_is_unknown(monkeypatch):
    monkeypatch.setattr("leaktight.models.factory.example", needs_numbers)
    network = Factory(function="leaktight.models.factory:example")
    assert network.size((1, 8, 8), 3) is None
    assert network.build((1, 8, 8), 3, seed=0).head.out_features == 3


def test_examples_that_would_make_a_giant_network_are_refused_before_it_is_built(monkeypatch):
    monkeypatch.setattr(nn.Linear, "forward", None)
    with pytest.raises(
        InvalidValue, match=r"A mlp must have at most 500000000 parameters\. Examples of shape \(1, 5000, 5000\)"
    ):
        MLP().build((1, 5000, 5000), 2, seed=0)
