"""A split training outlives the process that ran it: states go to files and come back to the last bit."""

import dataclasses
import stat

import pytest
import torch

from leaktight.core.errors import InvalidValue
from leaktight.core.scenario import flatten
from leaktight.data import RareDigit
from leaktight.defences import SumKL
from leaktight.learning import Split
from leaktight.learning.checkpoint_file import read_checkpoint, write_checkpoint
from leaktight.learning.exchange import play
from leaktight.models import MLP

SCENARIO = Split(data=RareDigit(), model=MLP(hidden=(8,)), label_party=("r0*",), batch_size=64)
DEFENCE = SumKL()


def parties():
    return SCENARIO.parties(SCENARIO.data.load(), DEFENCE, seed=0)


def go_on(feature, label, steps, after=lambda played, messages: None):
    play(feature, label, label.opening(), steps, after)


def parameters(feature, label) -> list[torch.Tensor]:
    return [*feature.bottom.state_dict().values(), *label.top.state_dict().values()]


def same(one, other) -> bool:
    return len(one) == len(other) and all(map(torch.equal, one, other))


def test_a_training_killed_half_way_ends_as_if_it_had_not_been(tmp_path):
    whole = parties()
    go_on(*whole, 12)
    feature, label = parties()

    def kill(played, _):
        for party in (feature, label):
            write_checkpoint(tmp_path / f"{party.name}.safetensors", party.state())
        if played == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        go_on(feature, label, 12, kill)
    again = parties()
    for party in again:
        party.restore(read_checkpoint(tmp_path / f"{party.name}.safetensors"))
    assert (again[0].step, again[1].step) == (5, 5)
    go_on(*again, 7)
    assert same(parameters(*whole), parameters(*again))


def test_nonsense_leaves_the_checkpoint_as_it_was_and_training_resumes_from_it(tmp_path):
    path = tmp_path / "label-party.safetensors"
    feature, label = parties()
    go_on(feature, label, 3)
    write_checkpoint(path, label.state())
    content = path.read_bytes()
    message = feature.respond(label.opening())
    broken = message.map(lambda tensor: tensor * float("nan"))
    with pytest.raises(InvalidValue, match="must be finite"):
        label.respond(broken)
    write_checkpoint(path, label.state())
    assert path.read_bytes() == content
    other = parties()[1]
    other.restore(read_checkpoint(path))
    answers = [party.respond(message).tensors["gradient"] for party in (label, other)]
    assert torch.equal(*answers)


def test_a_state_comes_back_as_it_was_and_is_its_owner_s_alone(tmp_path):
    _, label = parties()
    path = tmp_path / "folder" / "label.safetensors"
    state = {**label.state(), "memory": {"a": {"b": 0.5}, "c": torch.arange(3)}}
    write_checkpoint(path, state)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    one, other = flatten(state), flatten(read_checkpoint(path))
    assert list(one) == list(other)
    assert all(torch.equal(torch.as_tensor(one[name]), torch.as_tensor(other[name])) for name in one)


def test_a_file_that_is_cut_off_or_missing_is_one_sentence(tmp_path):
    path = tmp_path / "party.safetensors"
    with pytest.raises(InvalidValue, match="cannot be read: no such file"):
        read_checkpoint(path)
    write_checkpoint(path, parties()[0].state())
    content = path.read_bytes()
    for broken in (b"", content[:7], content[: len(content) // 2], content[:-1], b"{}" + content):
        path.write_bytes(broken)
        with pytest.raises(InvalidValue, match="must be a whole checkpoint of this version") as error:
            read_checkpoint(path)
        assert "\n" not in str(error.value)


def test_a_party_refuses_the_other_s_checkpoint(tmp_path):
    feature, label = parties()
    write_checkpoint(tmp_path / "label", label.state())
    before = flatten(feature.state())
    with pytest.raises(InvalidValue, match="The checkpoint must hold the parameters of this model"):
        feature.restore(read_checkpoint(tmp_path / "label"))
    assert all(
        torch.equal(torch.as_tensor(before[name]), torch.as_tensor(value)) for name, value in flatten(feature.state()).items()
    )


def test_what_is_under_way_is_kept_too(tmp_path):
    feature, label = parties()
    message = feature.respond(label.opening())
    write_checkpoint(tmp_path / "feature", feature.state())
    other, _ = parties()
    other.restore(read_checkpoint(tmp_path / "feature"))
    repeated = other.respond(dataclasses.replace(label.opening()))
    assert torch.equal(repeated.tensors["activations"], message.tensors["activations"])
