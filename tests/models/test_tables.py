"""The networks against the papers' tables: layer shapes, sizes, parameter counts, initial weights."""

import itertools
import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from leaktight.core.training_mode import BatchNorm
from leaktight.models import MLP, VGG16, AlexNet, ConvNet, DLNet, FaceAlexNet, FCNet, LeNet, ResNet20, VGG11Net
from leaktight.models.layers import FixedBatchNorm, he, norm, uniform
from leaktight.models.stack import stack


def count(model):
    return sum(parameter.numel() for parameter in model.parameters())


def weighted(model):
    return [tuple(layer.weight.shape) for layer in model.modules() if isinstance(layer, nn.Conv2d | nn.Linear)]


def sizes(model, shape):
    """Return the spatial size after each convolution and pooling, in order."""
    seen = []
    for layer in model.modules():
        if isinstance(layer, nn.Conv2d | nn.MaxPool2d | nn.AvgPool2d):
            layer.register_forward_hook(lambda _layer, _inputs, output: seen.append(tuple(output.shape[-2:])))
    model(torch.rand(1, *shape))
    return seen


def squares(*sides):
    return [(side, side) for side in sides]


def test_dlnet_is_table_6():
    model = DLNet().build((3, 32, 32), 10, seed=0)
    assert weighted(model) == [(12, 3, 5, 5), (12, 12, 5, 5), (12, 12, 5, 5), (12, 12, 5, 5), (10, 768)]
    assert sizes(model, (3, 32, 32)) == squares(16, 8, 8, 8)
    convolutions = [layer for layer in model.modules() if isinstance(layer, nn.Conv2d)]
    assert [(layer.padding, layer.stride) for layer in convolutions] == [((2, 2), (s, s)) for s in (2, 2, 1, 1)]
    assert count(model) == 3 * 12 * 25 + 12 + 3 * (12 * 12 * 25 + 12) + 7690


@pytest.mark.parametrize("name", ["sigmoid", "tanh"])
def test_dlnet_has_an_activation_after_each_convolution_and_none_after_the_head(name):
    kinds = [type(layer).__name__.lower() for layer in DLNet(activation=name).build((1, 28, 28), 10, seed=0).body]
    assert kinds == ["conv2d", name] * 4 + ["flatten"]


@pytest.mark.parametrize("bound", [0.3, 0.5])
def test_dlnet_draws_weights_and_biases_from_the_whole_interval(bound):
    model = DLNet(bound=bound).build((3, 32, 32), 10, seed=0)
    assert DLNet().bound == 0.3
    drawn = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
    assert drawn.abs().max() <= bound
    assert drawn.abs().max() > 0.99 * bound
    assert math.isclose(drawn.std().item(), bound / math.sqrt(3), rel_tol=0.02)
    for parameter in model.parameters():
        assert parameter.abs().max() > 0.5 * bound


def test_dlnet_can_keep_torchs_own_weights():
    model = DLNet(initial="default").build((3, 32, 32), 10, seed=0)
    assert model.body.conv2.weight.abs().max() <= 1 / math.sqrt(12 * 25)
    assert model.head.weight.abs().max() <= 1 / math.sqrt(768)


def test_alexnet_is_table_4():
    model = AlexNet().build((3, 32, 32), 10, seed=0)
    assert weighted(model) == [
        (64, 3, 5, 5),
        (192, 64, 5, 5),
        (384, 192, 3, 3),
        (256, 384, 3, 3),
        (256, 256, 3, 3),
        (256, 4096),
        (10, 256),
    ]
    assert sizes(model, (3, 32, 32)) == squares(32, 16, 16, 8, 8, 8, 8, 4)
    assert [layer.padding[0] for layer in model.modules() if isinstance(layer, nn.Conv2d)] == [2, 2, 1, 1, 1]


def test_vgg16_is_table_5_with_the_printed_output_sizes():
    model = VGG16().build((3, 32, 32), 10, seed=0)
    stages = [(64, 2), (128, 2), (256, 3), (512, 3), (512, 3)]
    channels = [3] + [wide for wide, depth in stages for _ in range(depth)]
    expected = [(wide, before, 3, 3) for before, wide in itertools.pairwise(channels)]
    assert weighted(model) == [*expected, (256, 512 * 4 * 4), (10, 256)]
    assert sizes(VGG16(width=2).build((3, 32, 32), 10, seed=0), (3, 32, 32)) == squares(
        *(32, 32, 16), *(16, 16, 8), *(8, 8, 8), *(8, 8, 8), *(8, 8, 8, 4)
    )
    layers = list(model.body)
    for position, layer in enumerate(layers):
        if isinstance(layer, nn.Conv2d):
            after, then = layers[position + 1 : position + 3]
            assert isinstance(after, nn.GroupNorm)
            assert after.num_channels == layer.out_channels
            assert isinstance(then, nn.ReLU)


FACE = (3, 62, 47)


@pytest.mark.parametrize("classes", [2, 3])
def test_face_alexnet_is_the_one_of_section_5(classes):
    model = FaceAlexNet().build(FACE, classes, seed=0)
    assert weighted(model) == [(16, 3, 3, 3), (32, 16, 3, 3), (64, 32, 3, 3), (256, 64 * 7 * 5), (classes, 256)]
    assert sizes(model, FACE) == [(62, 47), (31, 23), (31, 23), (15, 11), (15, 11), (7, 5)]
    assert count(model) == 448 + 4_640 + 18_496 + 573_696 + 257 * classes
    kinds = [type(layer).__name__ for layer in model.body]
    assert kinds == ["Conv2d", "ReLU", "MaxPool2d"] * 3 + ["Flatten", "Linear", "ReLU"]


def test_vgg11net_is_the_one_of_section_5():
    model = VGG11Net().build(FACE, 2, seed=0)
    channels = (3, 16, 16, 16, 16, 32, 32, 64, 64)
    convolutions = [(wide, before, 3, 3) for before, wide in itertools.pairwise(channels)]
    assert weighted(model) == [*convolutions, (256, 64 * 7 * 5), (128, 256), (2, 128)]
    assert sizes(model, FACE) == [(62, 47)] * 6 + [(31, 23)] * 2 + [(15, 11)] * 2 + [(7, 5)]
    of_convolutions = 448 + 3 * 2_320 + 4_640 + 9_248 + 18_496 + 36_928
    assert count(model) == of_convolutions + 573_696 + 32_896 + 258


def test_the_names_of_a_stack_count_its_layers():
    names = [name for name, _ in VGG11Net().build(FACE, 2, seed=0).body.named_children()]
    assert [name for name in names if name.startswith("conv")] == [f"conv{number}" for number in range(1, 9)]
    assert [name for name in names if name.startswith("relu")] == [f"relu{number}" for number in range(1, 11)]
    assert [name for name in names if name.startswith("pool")] == ["pool6", "pool7", "pool8"]
    assert [name for name in names if name.startswith("linear")] == ["linear1", "linear2"]


@pytest.mark.parametrize("depth", [2, 5, 9])
def test_fcnet_has_hidden_layers_of_one_width_and_so_many_in_all(depth):
    model = FCNet(depth=depth).build(FACE, 2, seed=0)
    assert weighted(model) == [(32, 62 * 47 * 3), *[(32, 32)] * (depth - 2), (2, 32)]
    assert count(model) == 279_776 + 1_056 * (depth - 2) + 66
    assert FCNet().depth == 9
    assert [type(layer) for layer in model.body] == [nn.Flatten, *[nn.Linear, nn.ReLU] * (depth - 1)]


def test_a_stack_is_what_it_says():
    body, head = stack((2, 5, 4), filters=((3, True), (4, False)), hidden=(6, 5), classes=2)
    inputs = torch.rand(7, 2, 5, 4)
    first, second = body.conv1, body.conv2
    found = F.max_pool2d(F.relu(F.conv2d(inputs, first.weight, first.bias, padding=1)), 2)
    found = F.relu(F.conv2d(found, second.weight, second.bias, padding=1)).flatten(1)
    for layer in (body.linear1, body.linear2):
        found = F.relu(found @ layer.weight.T + layer.bias)
    torch.testing.assert_close(body(inputs), found)
    assert (head.in_features, head.out_features) == (5, 2)


@pytest.mark.parametrize("network", [FaceAlexNet(), VGG11Net(), FCNet()], ids=str)
def test_the_signal_reaches_the_head_of_the_layer_study_networks(network):
    model = network.build(FACE, 2, seed=0)
    biases = {name: tensor for name, tensor in model.body.named_parameters() if name.endswith("bias")}
    assert not any(bias.any() for bias in biases.values())
    features = model.features(torch.randn(16, *FACE))
    assert 0.05 < features.square().mean().sqrt() < 20
    assert features.std(0).max() > 0.05


@pytest.mark.parametrize("width", [1, 3, 16])
def test_convnet_has_the_stated_channels_and_a_head_of_36_times_the_width(width):
    model = ConvNet(width=width).build((3, 32, 32), 10, seed=0)
    wide = [shape[0] // width for shape in weighted(model)[:-1]]
    assert wide == [1, 2, 2, 4, 4, 4, 4, 4]
    assert weighted(model)[-1] == (10, 36 * width)
    assert sizes(model, (3, 32, 32)) == squares(32, 32, 32, 32, 32, 32, 10, 10, 10, 3)


@pytest.mark.parametrize(
    ("kind", "layer"),
    [("group", nn.GroupNorm), ("batch", nn.BatchNorm2d), ("running", BatchNorm), ("none", nn.Identity)],
)
def test_convnet_has_the_chosen_norm_between_each_convolution_and_its_relu(kind, layer):
    layers = [
        each for each in ConvNet(norm=kind).build((3, 32, 32), 10, seed=0).body if not isinstance(each, nn.MaxPool2d)
    ]
    assert [type(each) for each in layers[0:24:3]] == [nn.Conv2d] * 8
    assert all(isinstance(each, layer) for each in layers[1:24:3])
    assert [type(each) for each in layers[2:24:3]] == [nn.ReLU] * 8


@pytest.mark.parametrize("kind", ["group", "batch", "running"])
def test_resnet20_has_as_many_parameters_as_its_paper_says(kind):
    convolutions = 27 * 16 + 6 * 9 * 16**2 + 9 * 16 * 32 + 5 * 9 * 32**2 + 9 * 32 * 64 + 5 * 9 * 64**2
    norms = 2 * (16 * 7 + 32 * 6 + 64 * 6)
    assert count(ResNet20(norm=kind).build((3, 32, 32), 10, seed=0)) == convolutions + norms + 650 == 269_722


def test_resnet20_is_twenty_weighted_layers_and_the_wide_form_is_four_times_as_wide():
    narrow, wide = (weighted(ResNet20(width=width).build((3, 32, 32), 10, seed=0)) for width in (1, 4))
    assert len(narrow) == 20
    assert [shape[0] for shape in narrow[:-1]] == [16] * 7 + [32] * 6 + [64] * 6
    assert [shape[0] for shape in wide[:-1]] == [4 * shape[0] for shape in narrow[:-1]]


def test_a_resnet_block_with_silent_convolutions_is_its_shortcut():
    body = ResNet20(norm="none").build((3, 32, 32), 10, seed=0).body
    block = body.stage2block1
    for parameter in block.parameters():
        nn.init.zeros_(parameter)
    inputs = torch.rand(2, 16, 8, 8)
    outputs = block(inputs)
    assert outputs.shape == (2, 32, 4, 4)
    assert torch.equal(outputs[:, 8:24], inputs[:, :, ::2, ::2])
    assert not outputs[:, :8].any()
    assert not outputs[:, 24:].any()


@pytest.mark.parametrize(
    ("shape", "features"), [((1, 28, 28), 400), ((3, 32, 32), 400), ((1, 12, 12), 16), ((3, 64, 64), 16 * 13**2)]
)
def test_lenet_ends_its_convolutions_where_it_should(shape, features):
    model = LeNet().build(shape, 10, seed=0)
    colours = shape[0]
    assert weighted(model) == [(6, colours, 5, 5), (16, 6, 5, 5), (120, features), (84, 120), (10, 84)]


def test_mlp_is_what_it_says():
    model = MLP(hidden=(5, 4), activation="tanh").build((2, 3), 3, seed=0)
    inputs = torch.rand(7, 2, 3)
    first, second = model.body.linear1, model.body.linear2
    hidden = torch.tanh(inputs.flatten(1) @ first.weight.T + first.bias)
    hidden = torch.tanh(hidden @ second.weight.T + second.bias)
    torch.testing.assert_close(model(inputs), hidden @ model.head.weight.T + model.head.bias)


def test_the_first_layer_of_an_mlp_gives_a_batch_of_one_away():
    model = MLP(hidden=(9,)).build((1, 8, 8), 10, seed=0)
    example = torch.rand(1, 1, 8, 8)
    F.cross_entropy(model(example), torch.tensor([3])).backward()
    first = model.body.linear1
    row = int(first.bias.grad.abs().argmax())
    torch.testing.assert_close(first.weight.grad[row] / first.bias.grad[row], example.flatten())


def test_fixed_batch_norm_is_batch_norm_in_evaluation_mode_whatever_the_mode():
    fixed, plain = FixedBatchNorm(3), nn.BatchNorm2d(3)
    state = {
        name: torch.rand_like(tensor) + 0.5 for name, tensor in plain.state_dict().items() if tensor.is_floating_point()
    }
    fixed.load_state_dict(state, strict=False)
    plain.load_state_dict(state, strict=False)
    inputs = torch.randn(4, 3, 5, 5)
    expected = plain.eval()(inputs)
    assert torch.equal(fixed.train()(inputs), expected)
    assert torch.equal(nn.Sequential(fixed).train()(inputs), expected)
    assert torch.equal(fixed.running_mean, state["running_mean"])


def test_new_batch_norm_only_scales_by_its_epsilon():
    inputs = torch.randn(4, 3, 5, 5)
    torch.testing.assert_close(norm("batch", 3)(inputs), inputs / math.sqrt(1 + 1e-5))


@pytest.mark.parametrize(
    ("channels", "groups"), [(1, 1), (2, 1), (4, 1), (6, 1), (8, 2), (12, 3), (64, 16), (128, 32), (512, 32), (36, 9)]
)
def test_group_norm_has_up_to_32_groups_of_at_least_4_channels(channels, groups):
    made = norm("group", channels)
    assert made.num_groups == groups
    assert channels % groups == 0
    outputs = made(torch.randn(2, channels, 5, 5) * 3 + 1).unflatten(1, (groups, -1))
    torch.testing.assert_close(outputs.mean((2, 3, 4)), torch.zeros(2, groups), atol=1e-5, rtol=0)


@pytest.mark.parametrize("normal", [True, False])
def test_he_keeps_the_scale_of_a_signal_through_relu(normal):
    torch.manual_seed(0)
    deep = nn.Sequential(*[layer for _ in range(10) for layer in (nn.Linear(256, 256), nn.ReLU())])
    he(deep, normal)
    inputs = torch.randn(64, 256)
    assert 0.5 < deep(inputs).square().mean() / F.relu(inputs).square().mean() < 2
    assert not any(layer.bias.any() for layer in deep if isinstance(layer, nn.Linear))


def test_uniform_reaches_every_parameter():
    layer = nn.Linear(100, 100)
    uniform(layer, 7.0)
    assert 6.5 < layer.weight.abs().max() <= 7
    assert 6 < layer.bias.abs().max() <= 7
