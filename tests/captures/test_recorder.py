"""The recorder writes what would be sent in any PyTorch loop, and nothing of the examples unless it is asked to."""

import pytest
import torch
from torch import nn

from leaktight.captures import Recorder, read_captures, read_truth
from leaktight.core.errors import InvalidValue


def batch(count=3):
    generator = torch.Generator().manual_seed(count)
    return torch.rand(count, 1, 2, 2, generator=generator), torch.arange(count) % 2


def network():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return nn.Sequential(nn.Flatten(), nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Linear(3, 2))


def stepped(model, inputs, labels, rate=0.1):
    nn.functional.cross_entropy(model(inputs), labels).backward()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter -= rate * parameter.grad


def test_folders_may_lie_in_the_home_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    model, (inputs, labels) = network(), batch()
    with Recorder("~/recorded", model, truth="~/truth.safetensors") as recorder:
        nn.functional.cross_entropy(model(inputs), labels).backward()
        recorder.gradient(batch=(inputs, labels))
    assert len(read_captures(tmp_path / "recorded")) == 1
    assert (tmp_path / "truth.safetensors").is_file()


def test_a_gradient_is_taken_from_backward(tmp_path):
    model, (inputs, labels) = network(), batch()
    with Recorder(tmp_path, model, reference="mine:net") as recorder:
        nn.functional.cross_entropy(model(inputs), labels).backward()
        recorder.gradient(batch=(inputs, labels))
    [capture] = read_captures(tmp_path)
    manifest = capture.manifest
    assert (manifest.kind, manifest.examples, manifest.shape, manifest.round) == ("gradient", 3, (1, 2, 2), 0)
    assert (manifest.model, manifest.training, manifest.sender) == ("mine:net", True, "model")
    assert torch.equal(capture.tensors()["1.weight"], model[1].weight.grad)
    assert "2.running_mean" in capture.parameters()
    assert "2.running_mean" not in capture.tensors()


def test_an_update_is_new_minus_old_and_messages_are_numbered(tmp_path):
    model = network()
    with Recorder(tmp_path, model, shape=(1, 2, 2), sender="loop") as recorder:
        for _ in range(2):
            before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
            stepped(model, *batch())
            recorder.update(before, examples=3, local_steps=1, learning_rate=0.1, momentum=0.5)
    first, second = read_captures(tmp_path)
    assert (first.manifest.name, second.manifest.name) == ("loop/0", "loop/1")
    assert torch.allclose(second.parameters()["1.weight"], first.parameters()["1.weight"] + first.tensors()["1.weight"])
    assert (second.manifest.local_steps, second.manifest.learning_rate, second.manifest.momentum) == (1, 0.1, 0.5)
    assert second.manifest.shape == (1, 2, 2)


def test_states_may_be_given_instead_of_the_model(tmp_path):
    with Recorder(tmp_path, network()) as recorder:
        recorder.update({"weight": torch.zeros(2)}, {"weight": torch.ones(2)})
        recorder.gradient({"weight": torch.full((2,), 5.0)}, examples=7)
    one, other = read_captures(tmp_path)
    assert one.tensors()["weight"].tolist() == [1, 1]
    assert other.manifest.examples == 7


def test_nothing_of_the_examples_is_written_unless_asked(tmp_path):
    model, (inputs, labels) = network(), batch()
    stepped(model, inputs, labels)
    with Recorder(tmp_path / "plain", model) as recorder:
        recorder.gradient(batch=(inputs, labels))
    content = b"".join(path.read_bytes() for path in (tmp_path / "plain").iterdir())
    assert inputs[0].numpy().tobytes() not in content
    truth = tmp_path / "truth.safetensors"
    with Recorder(tmp_path / "kept", model, truth=truth) as recorder:
        recorder.gradient(batch=(inputs, labels))
    written = read_truth(truth, ["model/0"])["model/0"]
    assert torch.equal(written.inputs, inputs)
    assert oct(truth.stat().st_mode & 0o777) == "0o600"


def test_what_cannot_be_recorded_is_one_sentence(tmp_path):
    model = network()
    with Recorder(tmp_path, model) as recorder:
        with pytest.raises(InvalidValue, match="call `backward` first"):
            recorder.gradient()
        with pytest.raises(InvalidValue, match="copy the state dict before training"):
            recorder.update(model.state_dict())
        recorder.gradient({"1.weight": torch.ones(3, 4)})
    with pytest.raises(InvalidValue, match="holds captures already"), Recorder(tmp_path, model):
        pass


def test_the_model_is_left_as_it_is(tmp_path):
    model, (inputs, labels) = network(), batch()
    nn.functional.cross_entropy(model(inputs), labels).backward()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with Recorder(tmp_path, model) as recorder:
        recorder.gradient(batch=(inputs, labels))
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())
    assert model.training
