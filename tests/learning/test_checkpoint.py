"""A party's state goes out as plain tensors, to a file too, and comes back to the last bit: it outlives its process."""

from __future__ import annotations

import dataclasses
import stat

import pytest
import torch
from torch import nn

from leaktight.core.errors import InvalidValue
from leaktight.core.scenario import flatten, unflatten
from leaktight.data import RareDigit
from leaktight.defences import SumKL
from leaktight.learning import Adam, DecayedSgd, Sgd, Split
from leaktight.learning.checkpoint import read_checkpoint, restore_training, take_step, training_state, write_checkpoint
from leaktight.learning.exchange import play
from leaktight.models import MLP

OPTIMISERS = [Sgd(), Sgd(momentum=0.9), Adam()]
SCENARIO = Split(data=RareDigit(), model=MLP(hidden=(8,)), label_party=("r0*",), batch_size=64)
DEFENCE = SumKL()


def trained(optimiser, steps, start=0, state=None):
    """Train a small layer, from a checkpoint if there is one."""
    torch.manual_seed(0)
    layer = nn.Linear(3, 2)
    moves = optimiser.over(layer.parameters())
    if state is not None:
        restore_training(layer, moves, state)
    for step in range(start, start + steps):
        moves.zero_grad()
        (layer(torch.full((1, 3), float(step + 1))).square().sum() / 100).backward()
        take_step(moves, optimiser, step)
    return layer, moves


@pytest.mark.parametrize("optimiser", OPTIMISERS, ids=str)
def test_going_on_from_a_checkpoint_is_going_on(optimiser):
    whole, _ = trained(optimiser, 6)
    state = training_state(*trained(optimiser, 3))
    # As a file would keep it: flat names, empty tables gone.
    resumed, _ = trained(optimiser, 3, start=3, state=unflatten(flatten(state)))
    assert all(torch.equal(one, other) for one, other in zip(whole.parameters(), resumed.parameters(), strict=True))


@pytest.mark.parametrize("optimiser", OPTIMISERS, ids=str)
def test_a_checkpoint_is_a_copy_of_tensors_and_numbers(optimiser):
    layer, moves = trained(optimiser, 2)
    state = training_state(layer, moves)
    assert all(isinstance(value, torch.Tensor | float) for value in flatten(state).values())
    before = {name: value.clone() for name, value in state["model"].items()}
    with torch.no_grad():
        layer.weight.add_(1)
    assert all(torch.equal(before[name], state["model"][name]) for name in before)
    restore_training(layer, moves, state)
    moves.step()
    assert all(torch.equal(before[name], state["model"][name]) for name in before)


def test_a_new_checkpoint_forgets_the_moments_of_the_old_party():
    fresh = training_state(*trained(Adam(), 0))
    layer, moves = trained(Adam(), 4)
    restore_training(layer, moves, fresh)
    assert not moves.state


@pytest.mark.parametrize("change", ["missing", "shape", "more"])
def test_another_model_s_checkpoint_is_refused(change):
    layer, moves = trained(Adam(), 1)
    state = training_state(layer, moves)
    if change == "missing":
        del state["model"]["bias"]
    elif change == "shape":
        state["model"]["bias"] = torch.zeros(5)
    else:
        state["model"]["scale"] = torch.zeros(1)
    before = layer.weight.detach().clone()
    with pytest.raises(
        InvalidValue, match=r"The checkpoint must hold the parameters of this model. It differs in `(bias|scale)`"
    ):
        restore_training(layer, moves, state)
    assert torch.equal(layer.weight, before)


def test_a_step_has_the_size_of_its_round():
    optimiser = DecayedSgd(learning_rate=1.0, rounds=(1, 2))
    weight = torch.zeros(1, requires_grad=True)
    moves, sizes = optimiser.over([weight]), []
    for step in range(3):
        before = weight.item()
        weight.grad = torch.ones(1)
        take_step(moves, optimiser, step)
        sizes.append(before - weight.item())
    assert sizes == [1.0, 0.5, 0.25]


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
        torch.equal(torch.as_tensor(before[name]), torch.as_tensor(value))
        for name, value in flatten(feature.state()).items()
    )


def test_what_is_under_way_is_kept_too(tmp_path):
    feature, label = parties()
    message = feature.respond(label.opening())
    write_checkpoint(tmp_path / "feature", feature.state())
    other, _ = parties()
    other.restore(read_checkpoint(tmp_path / "feature"))
    repeated = other.respond(dataclasses.replace(label.opening()))
    assert torch.equal(repeated.tensors["activations"], message.tensors["activations"])
