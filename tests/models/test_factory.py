"""A person's own network: body and head are its own, and faults are told in one go."""

import importlib
import re
import sys

import pytest
import safetensors.torch
import torch
from torch import nn

from leaktight.core.errors import InvalidValue
from leaktight.models import DLNet, Factory, from_text, wrap
from leaktight.models.head import find_head, split

CODE = '''
import torch
from torch import nn

class Small(nn.Module):
    """The head is registered first and named in the middle of something."""
    def __init__(self, classes, hidden=5):
        super().__init__()
        self.out = nn.ModuleDict({"scores": nn.Linear(hidden, classes), "unused": nn.Linear(3, classes)})
        self.features = nn.Sequential(nn.Flatten(), nn.Linear(48, hidden), nn.ReLU(inplace=True))
    def forward(self, inputs):
        return self.out["scores"](self.features(inputs))

class Normed(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(16, 10))

class Pair(Small):
    def forward(self, inputs):
        return {"features": self.features(inputs), "logits": super().forward(inputs)}

class Tuple(Small):
    def forward(self, inputs):
        return self.features(inputs), super().forward(inputs)

def nothing():
    return None

def fails(shape):
    return 1 / (len(shape) - 3)

def needs_more(shape, depth):
    return None

number = 3
'''


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """A module of the person's own in the current folder."""
    (tmp_path / "my_models.py").write_text(CODE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield "my_models"
    sys.modules.pop("my_models", None)


@pytest.mark.parametrize("head", ["", "out.scores"])
def test_body_and_head_make_the_persons_own_outputs(mine, head):
    model = Factory(function=f"{mine}:Small", head=head).build((3, 4, 4), 6, seed=5)
    torch.manual_seed(5)
    own = sys.modules[mine].Small(classes=6)
    inputs = torch.rand(4, 3, 4, 4)
    assert torch.equal(model(inputs), own(inputs))
    assert model.features(inputs).shape == (4, 5)
    assert torch.equal(model.head.weight, own.out["scores"].weight)
    assert isinstance(model.body.out["scores"], nn.Identity)


def test_batch_norm_is_in_training_mode_unless_told_otherwise(mine):
    model = Factory(function=f"{mine}:Normed").build((3, 4, 4), 10, seed=0)
    torch.manual_seed(0)
    own, inputs = sys.modules[mine].Normed(), torch.rand(4, 3, 4, 4)
    torch.testing.assert_close(model(inputs), own(inputs))
    assert list(model.running()) == ["body.1.running_mean", "body.1.running_var"]


def test_batch_norm_is_put_into_evaluation_mode(mine):
    model = Factory(function=f"{mine}:Normed", batch_norm="eval").build((3, 4, 4), 10, seed=0)
    inputs = torch.rand(4, 3, 4, 4)
    torch.testing.assert_close(model(inputs)[:1], model(inputs[:1]))
    assert not model.running()
    assert not model.body.get_buffer("1.num_batches_tracked")


def test_a_part_of_the_output_is_chosen(mine):
    by_key = Factory(function=f"{mine}:Pair", output="logits").build((3, 4, 4), 6, seed=0)
    by_place = Factory(function=f"{mine}:Tuple", output="1").build((3, 4, 4), 6, seed=0)
    inputs = torch.rand(2, 3, 4, 4)
    assert by_key(inputs).shape == by_place(inputs).shape == (2, 6)
    assert "body.features.1.weight" in by_key.tensors()
    with pytest.raises(InvalidValue, match="choose one by `output = "):
        Factory(function=f"{mine}:Pair").build((3, 4, 4), 6, seed=0)


def test_weights_are_loaded_in_place_of_the_initial_ones(mine, tmp_path):
    torch.manual_seed(3)
    own = importlib.import_module(mine).Normed()
    own[1].running_mean += 2
    safetensors.torch.save_file(own.state_dict(), tmp_path / "net.safetensors")
    model = Factory(function=f"{mine}:Normed", weights=tmp_path / "net.safetensors").build((3, 4, 4), 10, seed=0)
    inputs = torch.rand(4, 3, 4, 4)
    torch.testing.assert_close(model.eval()(inputs), own.eval()(inputs))


def test_weights_may_lie_in_the_home_folder(mine, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    own = importlib.import_module(mine).Normed()
    safetensors.torch.save_file(own.state_dict(), tmp_path / "net.safetensors")
    assert Factory(function=f"{mine}:Normed", weights="~/net.safetensors").build((3, 4, 4), 10, seed=0)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "The weights `.*missing.safetensors` cannot be read"),
        (b"\x80\x04pickle", "The weights `some.safetensors` .* They must be a state dict in a safetensors file"),
        ({"0.weight": torch.zeros(4, 3, 3, 3)}, "The file `some.safetensors` must hold `0.bias` like the model"),
        ({"0.weight": torch.full((4, 3, 3, 3), torch.nan)}, "The `0.weight` of the weights .* must be finite numbers"),
    ],
)
def test_weights_that_do_not_fit_are_told_why(mine, tmp_path, content, sentence):
    path = tmp_path / ("some.safetensors" if content else "missing.safetensors")
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content:
        safetensors.torch.save_file(content, path)
    with pytest.raises(InvalidValue, match=sentence):
        Factory(function=f"{mine}:Normed", weights=path).build((3, 4, 4), 10, seed=0)


def test_settings_at_their_defaults_are_not_written_down():
    assert Factory(function="a:b").to_dict() == {
        "kind": "factory", "function": "a:b", "head": "", "batch_norm": "train",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (
            "nothing",
            "The model of `my_models:nothing` cannot be audited as it is:\n- It must be a torch.nn.Module. Got "
            "NoneType instead;",
        ),
        ("fails", "`my_models:fails` failed with ZeroDivisionError: division by zero (my_models.py, line 30)."),
        (
            "needs_more",
            "`my_models:needs_more` must need nothing but what it is offered: `shape`, `classes`. It also needs "
            "`depth`; give those a default.",
        ),
        ("number", "`my_models:number` must be a function or a class. Got an int instead."),
        ("Smal", "has no `Smal`. Did you mean `Small`?"),
    ],
)
def test_a_factory_that_does_not_make_a_model_is_told_why(mine, name, sentence):
    with pytest.raises(InvalidValue, match=re.escape(sentence)):
        Factory(function=f"{mine}:{name}").build((3, 4, 4), 10, seed=0)


def test_the_form_is_checked_at_once_and_the_code_only_when_it_is_built():
    Factory(function="no_such_module:make")
    sentence = "The `function` of factory must have the form `package.module:function`. Got 'models.py' instead."
    with pytest.raises(InvalidValue, match=re.escape(sentence)):
        Factory(function="models.py")
    with pytest.raises(InvalidValue, match="There is no module named `no_such_module`"):
        Factory(function="no_such_module:make").build((4,), 2, seed=0)


def test_wrap_leaves_the_module_as_it_was_and_shares_nothing_with_it():
    module = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2))
    body, head = wrap(module, (4,), 2)
    inputs = torch.rand(5, 4)
    assert torch.equal(head(body(inputs)), module(inputs))
    assert isinstance(module[2], nn.Linear)
    mine = {parameter.data_ptr() for parameter in module.parameters()}
    assert mine.isdisjoint(parameter.data_ptr() for part in (body, head) for parameter in part.parameters())


def test_wrap_lists_every_obstacle_in_one_error():
    module = nn.Sequential(nn.Linear(4, 3), nn.AlphaDropout(0.5), nn.Linear(3, 2), nn.Softmax(1))
    with pytest.raises(
        InvalidValue, match=r"^This model cannot be audited as it is:\n- Dropout [^\n]*\n- The linear layer [^\n]*$"
    ):
        wrap(module, (4,), 2)
    with pytest.raises(InvalidValue, match="It has no linear layer named `last`"):
        wrap(module.eval(), (4,), 2, head="last")


def test_a_module_that_is_one_linear_layer_has_an_empty_body():
    module = nn.Linear(4, 2)
    body, head = wrap(module, (4,), 2)
    assert isinstance(body, nn.Identity)
    assert torch.equal(head.weight, module.weight)


def test_wrap_can_put_batch_norm_into_evaluation_mode_in_its_copy_only():
    module = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Linear(3, 2))
    body, _ = wrap(module, (4,), 2, batch_norm="eval")
    assert not body[1].training
    assert module[1].training


def test_frozen_parameters_become_buffers_and_so_are_never_shared():
    module = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3).eval(), nn.Linear(3, 2))
    module[0].requires_grad_(False)
    module[1].bias.requires_grad_(False)
    body, head = split(module, "2")
    assert [name for name, _ in body.named_parameters()] == ["1.weight"]
    assert {"0.weight", "0.bias", "1.bias"} <= {name for name, _ in body.named_buffers()}
    inputs = torch.rand(5, 4)
    assert torch.equal(head(body(inputs)), module(inputs))


def test_the_head_is_found_by_its_output_and_not_by_its_place():
    module = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    assert find_head(module, torch.rand(2, 4)) == "1"
    assert find_head(nn.Sequential(module, nn.ReLU()), torch.rand(2, 4)) is None
    assert not any(layer._forward_hooks for layer in module.modules())


def test_a_word_on_the_command_line_is_a_kind_or_a_reference():
    assert from_text("dlnet") == DLNet()
    assert from_text("a.b:c") == Factory(function="a.b:c")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "resnet",
            "There is no model named `resnet`. Did you mean `resnet20`? Name your own as `package.module:function`.",
        ),
        ("transformer9", "There is no model named `transformer9`. Known are: `alexnet`, `convnet`, `deep_dlnet`"),
        ("factory", "There is no model named `factory`."),
        ("", "There is no model named ``."),
        (
            "model.py:make it",
            "The `function` of factory must have the form `package.module:function`. Got 'model.py:make it' instead.",
        ),
    ],
)
def test_a_word_that_means_nothing_is_answered_with_the_closest(text, sentence):
    with pytest.raises(InvalidValue, match=re.escape(sentence)):
        from_text(text)
