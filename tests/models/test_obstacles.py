"""Obstacles: each is found, with its fix, all at once; what works is left alone."""

import copy
import threading
import warnings

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from leaktight.models import obstacles
from leaktight.models.trial import invert

SHAPE, CLASSES = (1, 8, 8), 10


def net(*middle, end=()):
    """A small sound network with something in the middle and something at the end."""
    return nn.Sequential(nn.Conv2d(1, 8, 3, stride=2), *middle, nn.Flatten(), nn.Linear(72, CLASSES), *end)


class Own(nn.Module):
    """A network whose forward is given."""

    def __init__(self, run, **parts):
        super().__init__()
        self.run = run
        self.hidden = nn.Linear(64, 16)
        self.head = nn.Linear(16, CLASSES)
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, inputs):
        return self.run(self, inputs)


def plain(self, inputs):
    return self.head(torch.tanh(self.hidden(inputs.flatten(1))))


class Recurrent(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer, self.head = layer, nn.Linear(6, CLASSES)

    def forward(self, inputs):
        return self.head(self.layer(inputs.flatten(1, 2))[0][:, -1])


class Attention(nn.Module):
    def __init__(self, need_weights):
        super().__init__()
        self.need_weights = need_weights
        self.layer, self.head = nn.MultiheadAttention(8, 2, batch_first=True), nn.Linear(8, CLASSES)

    def forward(self, inputs):
        rows = inputs.flatten(1, 2)
        return self.head(self.layer(rows, rows, rows, need_weights=self.need_weights)[0][:, -1])


def tied():
    module = Own(lambda self, x: self.head(torch.tanh(self.second(torch.tanh(self.first(x.flatten(1)))))))
    module.first, module.second, module.head = nn.Linear(64, 64), nn.Linear(64, 64), nn.Linear(64, CLASSES)
    module.second.weight = module.first.weight
    return module


class OwnNorm(nn.BatchNorm2d):
    """Of a class whose forward may do anything."""


def norm_twice(self, inputs):
    return self.head(self.norm(torch.tanh(self.norm(self.hidden(inputs.flatten(1))))))


def drop_twice(self, inputs):
    return self.head(self.drop(torch.tanh(self.hidden(self.drop(inputs.flatten(1))))))


def spectral():
    return nn.utils.parametrizations.spectral_norm(nn.Linear(72, 72))


def shared_head():
    module = nn.Sequential(nn.Flatten(), nn.Linear(64, 10), nn.Linear(10, 10), nn.Linear(10, 10))
    module[3].weight = module[2].weight
    return module


def with_nan():
    module = net()
    nn.init.constant_(module[0].bias, float("nan"))
    return module


def frozen_head():
    module = net()
    module[2].requires_grad_(False)
    return module


def twice(self, inputs):
    return self.head(F.pad(self.head(torch.tanh(self.hidden(inputs.flatten(1)))), (0, 6)))


def not_called(self, inputs):
    features = torch.tanh(self.hidden(inputs.flatten(1)))
    return self.head(features[:, : self.head.in_features])


def branching(self, inputs):
    return plain(self, inputs if inputs.sum() > 0 else -inputs)


def whole_batch(self, inputs):
    return plain(self, inputs - inputs.mean(0))


def squeezing(self, inputs):
    return self.head(torch.tanh(self.hidden(inputs.flatten(1))).squeeze())


def unbiased(self, inputs):
    if len(inputs) < 2:
        raise ValueError("two are needed")
    return plain(self, inputs)


def unlearned(self, inputs):
    with torch.no_grad():
        features = plain(self, inputs)
    return features.detach()


def rooted(self, inputs):
    # The derivative of a root at 0 is infinite.
    return self.head(torch.sqrt(F.relu(self.hidden(inputs.flatten(1)))))


LISTED = {
    "not a module": (lambda: "a text", "It must be a torch.nn.Module. Got str instead; return the module itself."),
    "a class": (lambda: nn.Linear, "It must be a torch.nn.Module. Got type instead;"),
    "batch norm of another class": (
        lambda: net(OwnNorm(8)),
        'Batch norm `1` of class OwnNorm is in training mode. Use torch\'s own class, set `batch_norm = "eval"` '
        "(`--batch-norm eval`), or use group norm.",
    ),
    "batch norm that averages": (
        lambda: net(nn.BatchNorm2d(8, momentum=None)),
        "Batch norm `1` averages over all batches that it ever saw. Give it a momentum, such as 0.1.",
    ),
    "batch norm used twice": (
        lambda: Own(norm_twice, norm=nn.BatchNorm1d(16)),
        "Batch norm `norm` is used 2 times in one pass. Give each use a layer of its own.",
    ),
    "tracking instance norm": (
        lambda: net(nn.InstanceNorm2d(8, track_running_stats=True)),
        "Instance norm `1` tracks running statistics.",
    ),
    "dropout of another class": (
        lambda: net(nn.AlphaDropout(0.5)),
        "Dropout `1` of class AlphaDropout is in training mode. Use `nn.Dropout`, or call `.eval()` on it.",
    ),
    "dropout of everything": (lambda: net(nn.Dropout(1.0)), "Dropout `1` drops everything. Set its p below 1."),
    "dropout as a function": (
        lambda: Own(lambda self, x: plain(self, F.dropout(x, 0.5, self.training))),
        "Its output is random. Use `nn.Dropout` to drop something, or take the random step out of `forward`.",
    ),
    "spectral norm": (
        lambda: nn.Sequential(nn.Flatten(), nn.Linear(64, 72), spectral(), nn.Linear(72, 10)),
        "Buffer `2.parametrizations.weight.0._u`, `2.parametrizations.weight.0._v` changes with every run. Call "
        "`.eval()`,",
    ),
    "lazy": (
        lambda: nn.Sequential(nn.Flatten(), nn.LazyLinear(10)),
        "Lazy layer `1` has no weights yet. Run the module once",
    ),
    "lazy norm": (lambda: nn.Sequential(nn.LazyBatchNorm2d(affine=False).eval()), "Lazy layer `0` has no weights yet."),
    "no parameters": (
        lambda: nn.Flatten(),
        "No parameter can be learned. Set `requires_grad` on those that are trained.",
    ),
    "all frozen": (lambda: net().requires_grad_(False), "No parameter can be learned."),
    "cannot be copied": (
        lambda: Own(plain, lock=threading.Lock()),
        "It cannot be copied: TypeError: cannot pickle '_thread.lock' object.",
    ),
    "wrong input": (
        lambda: nn.Sequential(nn.Flatten(), nn.Linear(65, 10)),
        "It does not run on examples of shape (1, 8, 8): RuntimeError:",
    ),
    "broken forward": (
        lambda: Own(lambda self, x: self.nothing(x)),
        "It does not run on examples of shape (1, 8, 8): AttributeError:",
    ),
    "two outputs": (
        lambda: Own(lambda self, x: (plain(self, x), x)),
        'Its output must be one tensor. Got a tuple with `0`, `1`; choose one by `output = "0"` (`--output 0`).',
    ),
    "wrong classes": (
        lambda: nn.Sequential(nn.Flatten(), nn.Linear(64, 7)),
        "Its output must have the shape (n, 10). Got (3, 7) for n = 3",
    ),
    "NaN": (with_nan, "Its output has NaN or infinite values. Check its initial weights"),
    "no linear layer": (
        lambda: nn.Sequential(nn.Conv2d(1, 10, 8), nn.Flatten()),
        "It has no linear layer. End it in `nn.Linear(",
    ),
    "softmax": (
        lambda: net(end=[nn.LogSoftmax(1)]),
        "The linear layer `2` is not the last step. Return its output as it is: the loss applies softmax itself.",
    ),
    "frozen head": (frozen_head, "The last linear layer `2` is frozen. Set `requires_grad` on its weights."),
    "shared head": (
        shared_head,
        "The last linear layer `3` shares its weights with another layer. Give it weights of its own.",
    ),
    "head used twice": (lambda: Own(twice), "The last linear layer `head` must be used once, by calling it."),
    "head not only called": (
        lambda: Own(not_called),
        "must be used once, by calling it. Without it `forward` fails: AttributeError",
    ),
    "whole batch": (lambda: Own(whole_batch), "Its output for one example depends on the others in the batch."),
    "squeeze": (lambda: Own(squeezing), "Its output has another form for a single example. Avoid `squeeze()`."),
    "batch of one": (lambda: Own(unbiased), "It does not run on a single example: ValueError: two are needed."),
    "input in place": (
        lambda: nn.Sequential(nn.Threshold(0.5, 0, inplace=True), net()),
        "It changes its input in place. Use `inplace=False`",
    ),
    "branch on data": (
        lambda: Own(branching),
        "It cannot be differentiated twice for several examples at once: RuntimeError: vmap:",
    ),
    "no second derivative": (
        lambda: net(nn.Hardsigmoid()),
        "hardsigmoid_backward is not implemented. Write the step that fails",
    ),
    "GRU": (
        lambda: Recurrent(nn.GRU(8, 6, batch_first=True)),
        "Write the recurrent layer `layer` out of linear layers, or use convolutions.",
    ),
    "flash attention": (
        lambda: Attention(need_weights=False),
        "Run attention under `torch.nn.attention.sdpa_kernel(SDPBackend.MATH)`.",
    ),
    "no gradient": (
        lambda: Own(unlearned),
        "Its parameters have no gradient. Take `torch.no_grad()` and `.detach()` out",
    ),
    "infinite gradient": (lambda: Own(rooted), "Its gradients have NaN or infinite values."),
}

SOUND = {
    "plain": net,
    "one linear layer": lambda: nn.Sequential(nn.Flatten(), nn.Linear(64, CLASSES)),
    "ReLU in place": lambda: net(nn.ReLU(inplace=True)),
    "batch norm in training mode": lambda: net(nn.BatchNorm2d(8)),
    "batch norm without statistics": lambda: net(nn.BatchNorm2d(8, track_running_stats=False)),
    "dropout in training mode": lambda: net(nn.Dropout(0.5)),
    "dropout of channels": lambda: net(nn.Dropout2d(0.1)),
    "one dropout layer in two places": lambda: Own(drop_twice, drop=nn.Dropout(0.5)),
    "batch norm in evaluation mode": lambda: net(nn.BatchNorm2d(8).eval()),
    "instance norm": lambda: net(nn.InstanceNorm2d(8, affine=True)),
    "layer norm": lambda: net(nn.LayerNorm([8, 3, 3])),
    "dropout of nothing": lambda: net(nn.Dropout(0.0)),
    "dropout in evaluation mode": lambda: net(nn.Dropout(0.5).eval()),
    "weights shared by two layers": tied,
    "LSTM": lambda: Recurrent(nn.LSTM(8, 6, batch_first=True)),
    "attention with weights": lambda: Attention(need_weights=True),
    "max pool": lambda: net(nn.MaxPool2d(3, stride=1, padding=1)),
    "half frozen": lambda: nn.Sequential(
        nn.Conv2d(1, 8, 3, stride=2).requires_grad_(False), nn.Flatten(), nn.Linear(72, CLASSES)
    ),
    "weight norm": lambda: nn.Sequential(
        nn.Flatten(), nn.utils.parametrizations.weight_norm(nn.Linear(64, 9)), nn.Linear(9, 10)
    ),
}


@pytest.mark.parametrize(("make", "sentence"), LISTED.values(), ids=LISTED.keys())
def test_an_obstacle_is_listed_with_its_fix(make, sentence):
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Lazy modules are a new feature")
        module = make()
    found = obstacles(module, SHAPE, CLASSES)
    assert any(sentence in each for each in found), found
    assert all(each.endswith((".", "?")) and "\n" not in each for each in found)


@pytest.mark.parametrize("make", SOUND.values(), ids=SOUND.keys())
def test_what_works_is_no_obstacle(make):
    torch.manual_seed(0)
    assert obstacles(make(), SHAPE, CLASSES) == []


def test_all_obstacles_are_listed_at_once():
    module = net(OwnNorm(8), nn.AlphaDropout(0.3), nn.Hardsigmoid(), OwnNorm(8), end=[nn.Softmax(1)])
    found = obstacles(module, SHAPE, CLASSES)
    assert [each.split()[0] + " " + each.split()[1] for each in found] == [
        "Batch norm",
        "Dropout `2`",
        "The linear",
        "It cannot",
    ]
    assert "`1`, `4`" in found[0]


def test_what_is_wrong_with_the_class_scores_is_listed_beside_that_they_are_a_part():
    module = Own(lambda self, x: {"features": x.flatten(1), "logits": plain(self, x)})
    assert obstacles(module, SHAPE, CLASSES) == [
        "Its output must be one tensor. Got a dict with `features`, `logits`; choose one by "
        '`output = "logits"` (`--output logits`).'
    ]
    module = Own(lambda self, x: (plain(self, x).softmax(1), x))
    assert [found.split(". ")[0] for found in obstacles(module, SHAPE, CLASSES)] == [
        "Its output must be one tensor",
        "The linear layer `head` is not the last step",
    ]
    assert len(obstacles(Own(lambda self, x: [plain(self, x).sum()]), SHAPE, CLASSES)) == 1


def test_a_long_list_of_layers_is_shortened():
    module = net(*[OwnNorm(8) for _ in range(8)])
    assert "Batch norm `1`, `2`, `3`, `4`, `5` and 3 more of class OwnNorm" in obstacles(module, SHAPE, CLASSES)[0]


def test_batch_norm_in_evaluation_mode_needs_running_statistics():
    module = net(nn.BatchNorm2d(8, track_running_stats=False))
    [found] = obstacles(module, SHAPE, CLASSES, batch_norm="eval")
    assert found.startswith("Batch norm `1` has no running statistics to normalise by in evaluation mode.")


def test_a_chosen_output_is_tried():
    module = Own(lambda self, x: {"aux": x, "logits": plain(self, x)})
    assert obstacles(module, SHAPE, CLASSES, output="logits") == []
    [found] = obstacles(module, SHAPE, CLASSES, output="logit")
    assert "There is no output `logit`. Did you mean `logits`?" in found


def test_a_named_head_must_exist_and_be_last():
    module = Own(plain)
    assert obstacles(module, SHAPE, CLASSES, head="head") == []
    assert obstacles(module, SHAPE, CLASSES, head="haed") == [
        "It has no linear layer named `haed`. Did you mean `head`?"
    ]
    assert "The linear layer `hidden` is not the last step." in obstacles(module, SHAPE, CLASSES, head="hidden")[0]


def test_looking_leaves_the_module_and_the_global_generator_as_they_were():
    module = net(nn.BatchNorm2d(8), nn.Dropout(0.5))
    before = copy.deepcopy(module.state_dict())
    state = torch.get_rng_state()
    obstacles(module, SHAPE, CLASSES)
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(tensor, before[name]) for name, tensor in module.state_dict().items())
    assert module.training
    assert module[1].training
    assert not [layer for layer in module.modules() if layer._forward_hooks]


def test_the_trial_of_two_derivatives_agrees_with_plain_autograd():
    torch.manual_seed(0)
    module = net(nn.Tanh())
    inputs = torch.rand(3, *SHAPE)
    gradients, second = invert(module, inputs)
    for victim in range(3):
        alone = inputs[victim : victim + 1].clone().requires_grad_()
        loss = F.cross_entropy(module(alone), torch.tensor([0]))
        plainly = torch.autograd.grad(loss, list(module.parameters()), create_graph=True)
        for (name, _), gradient in zip(module.named_parameters(), plainly, strict=True):
            torch.testing.assert_close(gradients[name][victim], gradient)
        (expected,) = torch.autograd.grad(sum(gradient.square().sum() for gradient in plainly), alone)
        torch.testing.assert_close(second[victim], expected[0])
