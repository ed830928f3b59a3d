"""The two parties of split learning together: as one joint model when nothing is perturbed, and each message applied at most once."""

from __future__ import annotations

import copy
import dataclasses

import pytest
import torch
from torch import nn

from leaktight.core.errors import InvalidValue, Refusal
from leaktight.core.local import Local
from leaktight.core.message import Kind
from leaktight.core.scenario import flatten
from leaktight.defences import GaussianNoise
from leaktight.learning import Adam, BatchOrder, DecayedSgd, FeatureParty, LabelParty, Sgd
from leaktight.learning.exchange import play
from leaktight.learning.task import cross_entropy

OPTIMISERS = [
    Sgd(learning_rate=0.1),
    Sgd(learning_rate=0.1, momentum=0.9),
    DecayedSgd(rounds=(5, 9)),
    Adam(learning_rate=0.01),
]


def joint(table, optimiser, steps: int, batch_size=16, seed=0):
    """Train the unsplit model by plain PyTorch; return the curve of losses and the parameters."""
    made = copy.deepcopy(table.made)
    bottom, top = made.bottom, made.top
    torch_optimiser = optimiser.over([*bottom.parameters(), *top.parameters()])
    order = BatchOrder(len(table.labels), batch_size, seed)
    losses = []
    for step in range(steps):
        for group in torch_optimiser.param_groups:
            group["lr"] = optimiser.at(step).learning_rate
        index = order.at(step)
        own = torch.zeros(len(index), 0) if table.own is None else table.own[index]
        loss = cross_entropy(top(bottom(table.features[index]), own), table.labels[index]).mean()
        torch_optimiser.zero_grad()
        loss.backward()
        torch_optimiser.step()
        losses.append(loss.item())
    return losses, bottom.state_dict(), top.state_dict()


@pytest.mark.parametrize("optimiser", OPTIMISERS, ids=str)
@pytest.mark.parametrize("kind", ["numbers", "levels", "image"])
def test_the_curve_is_that_of_one_joint_model_to_the_last_bit(tables, curve, same, kind, optimiser):
    table = tables(kind)
    feature, label = table.parties(optimiser)
    losses = curve(feature, label, 12)
    expected, bottom, top = joint(table, optimiser, 12)
    assert losses == expected
    assert losses[-1] != losses[0]
    assert same(feature.bottom.state_dict(), bottom)
    assert same(label.top.state_dict(), top)


def test_both_parties_draw_the_same_batches_and_every_row_in_a_pass(tables):
    table = tables("numbers")
    feature, label = table.parties(batch_size=100)
    rows = torch.cat([feature.order.at(step) for step in range(14)])
    assert torch.equal(rows, torch.cat([label.order.at(step) for step in range(14)]))
    assert len(rows.unique()) == 1400
    assert not torch.equal(feature.order.at(0), feature.order.at(14))


def tensors_in(value) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, nn.Module):
        return [*value.parameters(), *value.buffers()]
    if isinstance(value, dict):
        return [tensor for part in value.values() for tensor in tensors_in(part)]
    if isinstance(value, (list, tuple)):
        return [tensor for part in value for tensor in tensors_in(part)]
    if isinstance(value, torch.optim.Optimizer):
        return tensors_in([group["params"] for group in value.param_groups])
    if dataclasses.is_dataclass(value):
        return tensors_in(vars(value))
    return []


def test_neither_party_holds_what_is_the_other_s(tables, curve):
    table = tables("levels")
    feature, label = table.parties(Adam())
    curve(feature, label, 5)
    mine, theirs = tensors_in(vars(feature)), tensors_in(vars(label))
    # What one sent the other has seen: activations and gradients, and their storage in one process.
    crossed = {t.untyped_storage().data_ptr() for t in (*feature._sent.tensors.values(), *label._sent.tensors.values())}
    places = [{t.untyped_storage().data_ptr() for t in tensors if t.numel()} for tensors in (mine, theirs)]
    assert not (places[0] & places[1]) - crossed
    secrets = [table.labels.float(), table.own, *label.top.parameters()]
    assert not any(
        t.shape == s.shape and torch.equal(t.float(), s.float()) for t in mine for s in secrets if s.numel() > 4
    )
    features = [table.features, *feature.bottom.parameters()]
    assert not any(
        t.shape == s.shape and torch.equal(t.float(), s.float()) for t in theirs for s in features if s.numel() > 9
    )


def test_a_state_has_nothing_of_the_other_party(tables, curve):
    feature, label = tables("levels").parties(Adam())
    curve(feature, label, 3)
    assert set(feature.state()["model"]) == {name for name, _ in feature.bottom.named_parameters()}
    assert set(label.state()["model"]) == {name for name, _ in label.top.named_parameters()}
    assert {"deep.head.weight", "wide.ids.table.weight"} <= set(label.state()["model"])


def test_the_first_message_is_the_only_one_without_a_gradient(tables):
    feature, label = tables("numbers").parties()
    opening = label.opening()
    assert (opening.kind, opening.round, dict(opening.tensors)) == (Kind.CUT_GRADIENT, -1, {})
    activations = feature.respond(opening)
    assert (activations.kind, activations.round, activations.facts) == (Kind.ACTIVATION, 0, {"examples": 16.0})
    answer = label.respond(activations)
    assert (answer.kind, answer.round, answer.key) == (Kind.CUT_GRADIENT, 0, ("label-party", 0))
    assert feature.respond(answer).round == 1


@pytest.mark.parametrize("optimiser", OPTIMISERS, ids=str)
def test_a_gradient_that_comes_twice_is_applied_once(tables, same, optimiser):
    table = tables("numbers")
    feature, label = table.parties(optimiser)
    expected = joint(table, optimiser, 6)[1]
    message = feature.respond(label.opening())
    for _ in range(6):
        answer = label.respond(message)
        assert label.respond(message) is answer
        message = feature.respond(answer)
        again = feature.respond(answer)
        assert torch.equal(again.tensors["activations"], message.tensors["activations"])
    assert same(feature.bottom.state_dict(), expected)


@pytest.mark.parametrize("optimiser", OPTIMISERS, ids=str)
@pytest.mark.parametrize("dies", ["feature", "label", "both"])
@pytest.mark.parametrize("lost", [True, False])
def test_a_party_that_dies_goes_on_from_its_state_as_if_nothing_had_happened(
    tables, curve, same, dies, lost, optimiser
):
    table = tables("levels")
    defence = GaussianNoise(std=0.01)
    whole_feature, whole_label = table.parties(optimiser, defence)
    curve(whole_feature, whole_label, 10)
    feature, label = table.parties(optimiser, defence)
    curve(feature, label, 4)
    states = feature.state(), label.state()
    fresh = table.parties(optimiser, defence)
    if dies in ("feature", "both"):
        feature = fresh[0]
        feature.restore(states[0])
    if dies in ("label", "both"):
        label = fresh[1]
        label.restore(states[1])
    message = feature.respond(label.opening())
    if lost:
        message = feature.respond(label.opening())
    for _ in range(6):
        message = feature.respond(label.respond(message))
    assert same(feature.bottom.state_dict(), whole_feature.bottom.state_dict())
    assert same(label.top.state_dict(), whole_label.top.state_dict())


@pytest.mark.parametrize("answer", [None, "activations", torch.zeros(16, 9)], ids=["None", "str", "Tensor"])
def test_what_is_no_message_is_one_sentence(tables, same, answer):
    feature, label = tables("numbers").parties()
    before = label.state()
    for party, peer in ((label, "feature-party"), (feature, "label-party")):
        with pytest.raises(
            InvalidValue, match=f"{peer} must answer with a message. Got {type(answer).__name__} instead"
        ):
            party.respond(answer)
    assert same(flatten(before), flatten(label.state()))


@pytest.mark.parametrize("who", ["feature", "label"])
@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"step": None}, "The `step` of a checkpoint must be a whole number of at least 0. Got None instead"),
        ({"step": 2.5}, "Got 2.5 instead"),
        ({"step": float("nan")}, "Got nan instead"),
        ({"step": -1.0}, "Got -1.0 instead"),
        ({"memory": 3.0}, "The `memory` of a checkpoint must be named values. Got float instead"),
        ({"sent": [1.0]}, "What a checkpoint holds as `sent` must be a tensor of one row per example"),
        ({"model": None}, "must hold the parameters of this model and its optimiser's moments"),
        ({"optimiser": 1.0}, "must hold the parameters of this model and its optimiser's moments"),
    ],
    ids=str,
)
def test_a_checkpoint_without_sense_changes_nothing(tables, curve, same, who, change, sentence):
    table = tables("numbers")
    feature, label = table.parties(Adam(), GaussianNoise(std=0.01))
    curve(feature, label, 2)
    party = feature if who == "feature" else label
    other = table.parties(Adam(), seed=1)
    curve(*other, 3)
    before = party.state()
    state = {**(other[0] if who == "feature" else other[1]).state(), **change}
    with pytest.raises(InvalidValue, match=sentence):
        party.restore(state)
    assert same(flatten(before), flatten(party.state()))


@pytest.mark.parametrize("who", ["feature", "label"])
def test_rows_that_are_not_the_agreed_ones_are_refused(tables, who):
    table = tables("numbers")
    made = table.made
    with pytest.raises(
        InvalidValue, match=f"{who}-party must hold the 20 agreed rows. Got {len(table.labels)} instead"
    ):
        if who == "feature":
            FeatureParty(made.bottom, table.features, BatchOrder(20, 4, 0), Local("feature-party", 0))
        else:
            LabelParty(made.top, table.labels, BatchOrder(20, 4, 0), Local("label-party", 0), made.shape)


@pytest.mark.parametrize("who", ["feature", "label"])
@pytest.mark.parametrize("fails", [0, 2])
def test_a_defence_that_raises_leaves_no_trace_in_memory_and_notes(tables, curve, same, counting, who, fails):
    feature, label = tables("numbers").parties(Adam())
    party = feature if who == "feature" else label
    party.defence = counting(fails=fails)
    with pytest.raises(Refusal, match="This message cannot be protected"):
        curve(feature, label, 4)
    assert party.step == fails
    remembered = {"defence": {"steps": torch.tensor([2.0]), "last": {"round": 1.0}}} if fails else {}
    assert same(flatten(party.local.memory), flatten(remembered))
    assert party.local.notes == ({"count.steps": 2.0} if fails else {})
    party.defence = counting()
    curve(feature, label, 4 - fails)
    assert party.local.notes["count.steps"] == (4 if who == "label" else 5)


def test_nothing_is_revealed_by_a_defence_that_reveals_nothing(tables):
    feature, label = tables("numbers").parties()
    assert feature.close() is None
    assert label.close() is None


def test_playing_no_steps_does_nothing(tables):
    feature, label = tables("numbers").parties()
    play(feature, label, label.opening(), 0, lambda *_: pytest.fail("a step was played"))
    assert (feature.step, label.step) == (0, 0)
