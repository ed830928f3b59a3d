"""The two parties of split learning: as one joint model when nothing is perturbed, at most once, and closed against nonsense."""

from __future__ import annotations

import copy
import dataclasses
from typing import Literal

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from leaktight.core import registry
from leaktight.core.defence import Chain, Defence, Undefended
from leaktight.core.errors import InvalidValue, Refusal
from leaktight.core.local import Local
from leaktight.core.message import Kind, Message
from leaktight.core.random import stream
from leaktight.core.scenario import flat
from leaktight.core.task import Batch
from leaktight.data import Columns, RareDigit
from leaktight.defences import DPSGD, GaussianNoise, TopK
from leaktight.learning import Adam, DecayedSgd, FeatureParty, LabelParty, Order, Sgd
from leaktight.learning.exchange import play
from leaktight.learning.task import cross_entropy
from leaktight.models import MLP, DLNet, WideDeep, halves

OPTIMISERS = [Sgd(learning_rate=0.1), Sgd(learning_rate=0.1, momentum=0.9), DecayedSgd(rounds=(5, 9)), Adam(learning_rate=0.01)]


@dataclasses.dataclass
class Table:
    """Rows at both parties, and how the model is cut for them."""

    features: torch.Tensor
    own: torch.Tensor | None
    labels: torch.Tensor
    made: object

    def parties(self, optimiser=None, defence=None, batch_size=16, seed=0):
        made = copy.deepcopy(self.made)
        order = Order(len(self.labels), batch_size, seed)
        optimiser = optimiser or Sgd(learning_rate=0.1)
        feature = FeatureParty(made.bottom, self.features, order, Local("feature-party", seed), optimiser)
        label = LabelParty(
            made.top,
            self.labels,
            Order(len(self.labels), batch_size, seed),
            Local("label-party", seed),
            made.shape,
            self.own,
            optimiser,
            defence or Undefended(),
        )
        return feature, label


def tables(kind: str) -> Table:
    if kind == "image":
        data = RareDigit(form="image").load().train
        return Table(data.inputs, None, data.labels, halves(DLNet(width=3), (1, 8, 8), 2, 1, cut="sigmoid2"))
    if kind == "numbers":
        data = RareDigit().load().train
        return Table(data.inputs, None, data.labels, halves(MLP(hidden=(9, 5)), (64,), 2, 1, cut="relu1"))
    levels = RareDigit(form="levels").load()
    own, rest = levels.columns.find(["r0*", "r1*"]), levels.columns.find(["r2*", "r3*", "r4*"])
    made = halves(WideDeep(hidden=(9, 5)), levels.columns.take(rest), 2, 1, own=levels.columns.take(own))
    inputs = levels.train.inputs
    return Table(inputs[:, list(rest)], inputs[:, list(own)], levels.train.labels, made)


def joint(table: Table, optimiser, steps: int, batch_size=16, seed=0):
    """Train the unsplit model by plain PyTorch; return the curve of losses and the parameters."""
    made = copy.deepcopy(table.made)
    bottom, top = made.bottom, made.top
    torch_optimiser = optimiser.over([*bottom.parameters(), *top.parameters()])
    order = Order(len(table.labels), batch_size, seed)
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


def curve(feature: FeatureParty, label: LabelParty, steps: int) -> list[float]:
    """Exchange messages for some steps and return the label party's losses."""
    losses, message = [], feature.respond(label.opening())
    for _ in range(steps):
        answer = label.answer(message)
        losses.append(answer.loss.item())
        message = feature.respond(answer.sent)
    return losses


def same(one, other) -> bool:
    """Whether two tables hold the same tensors and numbers."""
    return one.keys() == other.keys() and all(
        torch.equal(torch.as_tensor(one[name]), torch.as_tensor(other[name])) for name in one
    )


def gradient_for(feature: FeatureParty, value=0.01, rows=None, width=None, step=None) -> Message:
    message = feature.respond(Message(Kind.CUT_GRADIENT, "label-party", "feature-party", feature.step - 1, {}))
    shape = list(message.tensors["activations"].shape)
    shape[0], shape[1] = rows or shape[0], width or shape[1]
    step = feature.step if step is None else step
    return Message(Kind.CUT_GRADIENT, "label-party", "feature-party", step, {"gradient": torch.full(shape, value)})


@pytest.mark.parametrize("optimiser", OPTIMISERS, ids=str)
@pytest.mark.parametrize("kind", ["numbers", "levels", "image"])
def test_the_curve_is_that_of_one_joint_model_to_the_last_bit(kind, optimiser):
    table = tables(kind)
    feature, label = table.parties(optimiser)
    losses = curve(feature, label, 12)
    expected, bottom, top = joint(table, optimiser, 12)
    assert losses == expected
    assert losses[-1] != losses[0]
    assert same(feature.bottom.state_dict(), bottom)
    assert same(label.top.state_dict(), top)


def test_both_parties_draw_the_same_batches_and_every_row_in_a_pass():
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


def test_neither_party_holds_what_is_the_other_s():
    table = tables("levels")
    feature, label = table.parties(Adam())
    curve(feature, label, 5)
    mine, theirs = tensors_in(vars(feature)), tensors_in(vars(label))
    # What one sent the other has seen: activations and gradients, and their storage in one process.
    crossed = {t.untyped_storage().data_ptr() for t in (*feature._sent.tensors.values(), *label._sent.tensors.values())}
    places = [{t.untyped_storage().data_ptr() for t in tensors if t.numel()} for tensors in (mine, theirs)]
    assert not (places[0] & places[1]) - crossed
    secrets = [table.labels.float(), table.own, *label.top.parameters()]
    assert not any(t.shape == s.shape and torch.equal(t.float(), s.float()) for t in mine for s in secrets if s.numel() > 4)
    features = [table.features, *feature.bottom.parameters()]
    assert not any(t.shape == s.shape and torch.equal(t.float(), s.float()) for t in theirs for s in features if s.numel() > 9)


def test_a_state_has_nothing_of_the_other_party():
    feature, label = tables("levels").parties(Adam())
    curve(feature, label, 3)
    assert set(feature.state()["model"]) == {name for name, _ in feature.bottom.named_parameters()}
    assert set(label.state()["model"]) == {name for name, _ in label.top.named_parameters()}
    assert {"deep.head.weight", "wide.ids.table.weight"} <= set(label.state()["model"])


def test_the_first_message_is_the_only_one_without_a_gradient():
    feature, label = tables("numbers").parties()
    opening = label.opening()
    assert (opening.kind, opening.round, dict(opening.tensors)) == (Kind.CUT_GRADIENT, -1, {})
    activations = feature.respond(opening)
    assert (activations.kind, activations.round, activations.facts) == (Kind.ACTIVATION, 0, {"examples": 16.0})
    answer = label.respond(activations)
    assert (answer.kind, answer.round, answer.key) == (Kind.CUT_GRADIENT, 0, ("label-party", 0))
    assert feature.respond(answer).round == 1


def test_the_gradient_is_that_of_the_mean_loss_row_by_row():
    table = tables("levels")
    feature, label = table.parties(batch_size=7)
    activations = feature.respond(label.opening())
    index = label.order.at(0)
    rows = []
    for row, at in zip(activations.tensors["activations"], index, strict=True):
        leaf = row[None].clone().requires_grad_(True)
        loss = cross_entropy(label.top(leaf, table.own[at][None]), table.labels[at][None]).sum()
        rows.append(torch.autograd.grad(loss, leaf)[0] / 7)
    assert torch.allclose(label.answer(activations).clean.tensors["gradient"], torch.cat(rows), atol=1e-7)


def test_with_a_linear_top_all_rows_share_one_direction_and_the_label_is_its_sign():
    """Section 2.1: g = (p - y) grad h, so that the gradient's side of the origin is the label."""
    feature, label = tables("levels").parties(batch_size=64)
    answer = label.answer(feature.respond(label.opening()))
    rows, labels = answer.clean.tensors["gradient"], answer.raw.labels
    cosine = torch.nn.functional.normalize(rows) @ torch.nn.functional.normalize(rows[labels == 1][:1]).T
    assert torch.allclose(cosine[:, 0], torch.where(labels == 1, 1.0, -1.0), atol=1e-4)


@pytest.mark.parametrize("optimiser", OPTIMISERS, ids=str)
def test_a_gradient_that_comes_twice_is_applied_once(optimiser):
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
def test_a_party_that_dies_goes_on_from_its_state_as_if_nothing_had_happened(dies, lost, optimiser):
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


def test_a_label_party_that_dies_before_its_answer_arrives_repeats_it():
    table = tables("numbers")
    feature, label = table.parties(Adam(), GaussianNoise(std=0.1))
    curve(feature, label, 3)
    message = feature.respond(label.opening())
    answer = label.respond(message)
    other = table.parties(Adam(), GaussianNoise(std=0.1))[1]
    other.restore(label.state())
    assert torch.equal(other.respond(message).tensors["gradient"], answer.tensors["gradient"])
    assert torch.equal(other.opening().tensors["gradient"], answer.tensors["gradient"])
    assert other.opening().key == answer.key


def test_a_state_of_another_model_is_refused_and_changes_nothing():
    feature, _ = tables("numbers").parties()
    other, _ = tables("image").parties()
    before = copy.deepcopy(feature.state())
    with pytest.raises(InvalidValue, match="The checkpoint must hold the parameters of this model"):
        feature.restore(other.state())
    assert same(feature.state()["model"], before["model"])


NONSENSE = {
    "nan": (lambda a: {"activations": a.index_fill(0, torch.tensor([2, 5]), float("nan"))}, "in 2 of 16 rows"),
    "infinite": (lambda a: {"activations": a + float("inf")}, "in 16 of 16 rows"),
    "too many rows": (
        lambda a: {"activations": torch.cat([a, a])},
        "must have 16 rows, one for each example of the batch. Got 32",
    ),
    "too few rows": (lambda a: {"activations": a[:3]}, "must have 16 rows, one for each example of the batch. Got 3"),
    "a wrong width": (lambda a: {"activations": a[:, :4]}, r"must have rows of shape \(9,\). Got \(4,\)"),
    "another dimension": (lambda a: {"activations": a[:, :, None]}, r"must have rows of shape \(9,\). Got \(9, 1\)"),
    "nothing": (lambda a: {}, r"must have 16 rows of shape \(9,\). Got nothing"),
    "no rows": (lambda a: {"activations": a[:0]}, r"must have 16 rows of shape \(9,\). Got nothing"),
    "something else": (lambda a: {"weights": a}, "must come alone. Got `weights`"),
    "something beside it": (lambda a: {"activations": a, "b": a}, "must come alone. Got `b`"),
    "a single number": (lambda a: {"activations": a[0, 0]}, r"must have 16 rows of shape \(9,\). Got a single number"),
    "too large for single precision": (lambda a: {"activations": a.double() + 1e300}, "in 16 of 16 rows"),
    "a sparse tensor": (lambda a: {"activations": a.to_sparse()}, "must come in a dense tensor. Got torch.sparse_coo"),
    "a list": (lambda a: {"activations": a.tolist()}, "must come in a dense tensor. Got list"),
    "whole numbers": (lambda a: {"activations": a.long()}, "must be floating point numbers. Got torch.int64"),
}


@pytest.mark.parametrize("wrong", NONSENSE)
def test_nonsense_from_the_feature_party_is_one_sentence_and_training_goes_on(wrong):
    table = tables("numbers")
    feature, label = table.parties(Adam(), GaussianNoise(std=0.01))
    twin_feature, twin_label = table.parties(Adam(), GaussianNoise(std=0.01))
    curve(feature, label, 3)
    curve(twin_feature, twin_label, 3)
    message = feature.respond(label.opening())
    change, sentence = NONSENSE[wrong]
    before = label.state()
    with pytest.raises(InvalidValue, match=sentence) as error:
        label.respond(dataclasses.replace(message, tensors=change(message.tensors["activations"])))
    assert str(error.value).startswith("The activations of step 3 from feature-party ")
    assert "\n" not in str(error.value)
    after = label.state()
    assert same(flat(before), flat(after))
    for _ in range(2):
        message = feature.respond(label.respond(message))
    curve(twin_feature, twin_label, 2)
    assert same(label.top.state_dict(), twin_label.top.state_dict())
    assert same(feature.bottom.state_dict(), twin_feature.bottom.state_dict())


@pytest.mark.parametrize("answer", [None, "activations", torch.zeros(16, 9)], ids=["None", "str", "Tensor"])
def test_what_is_no_message_is_one_sentence(answer):
    feature, label = tables("numbers").parties()
    before = label.state()
    for party, peer in ((label, "feature-party"), (feature, "label-party")):
        with pytest.raises(InvalidValue, match=f"{peer} must answer with a message. Got {type(answer).__name__} instead"):
            party.respond(answer)
    assert same(flat(before), flat(label.state()))


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
def test_a_checkpoint_without_sense_changes_nothing(who, change, sentence):
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
    assert same(flat(before), flat(party.state()))


def test_a_checkpoint_with_moments_of_another_kind_changes_nothing():
    feature, label = tables("numbers").parties(Adam())
    curve(feature, label, 2)
    before, state = label.state(), label.state()
    state["optimiser"] = dict.fromkeys(state["optimiser"], 1.0)
    state["model"] = {name: tensor + 1 for name, tensor in state["model"].items()}
    with pytest.raises(InvalidValue, match="It differs in `deep"):
        label.restore(state)
    assert same(flat(before), flat(label.state()))


def test_another_kind_of_message_is_refused():
    feature, label = tables("numbers").parties()
    message = feature.respond(label.opening())
    with pytest.raises(InvalidValue, match=r"must come in a message of kind `activation`. Got `gradient` instead"):
        label.respond(dataclasses.replace(message, kind=Kind.GRADIENT))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"value": float("nan")}, "in 16 of 16 rows"),
        ({"rows": 5}, "must have 16 rows, one for each example of the batch. Got 5"),
        ({"width": 2}, r"must have rows of shape \(9,\). Got \(2,\)"),
        ({"step": 7}, "feature-party awaits the gradient of step 0. Got that of step 7 instead"),
    ],
)
def test_nonsense_from_the_label_party_changes_nothing(settings, sentence):
    feature, _ = tables("numbers").parties(Adam())
    message = gradient_for(feature, **settings)
    before = feature.state()
    with pytest.raises(InvalidValue, match=sentence):
        feature.respond(message)
    assert same(before["model"], feature.state()["model"])
    assert feature.step == 0
    feature.respond(gradient_for(feature))
    assert feature.step == 1


def test_activations_of_another_step_are_refused():
    feature, label = tables("numbers").parties()
    curve(feature, label, 3)
    message = feature.respond(label.opening())
    for step in (0, 1, 9):
        with pytest.raises(InvalidValue, match=f"awaits the activations of step 3. Got those of step {step} instead"):
            label.respond(dataclasses.replace(message, round=step))


def test_labels_of_one_class_are_refused():
    table = tables("numbers")
    table.labels = torch.zeros_like(table.labels)
    with pytest.raises(InvalidValue, match=r"The labels of label-party must be of at least 2 classes. Got only 0 instead"):
        table.parties()


@pytest.mark.parametrize("who", ["feature", "label"])
def test_rows_that_are_not_the_agreed_ones_are_refused(who):
    table = tables("numbers")
    made = table.made
    with pytest.raises(InvalidValue, match=f"{who}-party must hold the 20 agreed rows. Got {len(table.labels)} instead"):
        if who == "feature":
            FeatureParty(made.bottom, table.features, Order(20, 4, 0), Local("feature-party", 0))
        else:
            LabelParty(made.top, table.labels, Order(20, 4, 0), Local("label-party", 0), made.shape)


class Watching(Defence):
    """Writes down what a label party's defence can see."""

    kind: Literal["test_watching"] = "test_watching"

    def on_message(self, message, local):
        local.memory["labels"] = local.batch.labels.clone()
        local.notes["positives"] = float(local.batch.labels.sum())
        if local.memory.get("fail"):
            raise Refusal("This batch cannot be protected.")
        return message.map(lambda tensor: tensor + torch.rand(tensor.shape, generator=local.rng))


class Changing(Defence):
    """Turns labels around, or drops some of them."""

    kind: Literal["test_changing"] = "test_changing"
    dropped: int = 0

    def on_batch(self, batch, local):
        return Batch(batch.inputs[self.dropped :], 1 - batch.labels[self.dropped :])


# Checks over all defences must not find them.
registry._classes["defence"].pop("test_watching")
registry._classes["defence"].pop("test_changing")


def test_a_defence_may_change_the_labels_that_the_gradient_sees():
    table = tables("numbers")
    feature, label = table.parties(defence=Changing())
    answer = label.answer(feature.respond(label.opening()))
    assert torch.equal(answer.used.labels, 1 - answer.raw.labels)
    table.labels = 1 - table.labels
    feature, label = table.parties()
    turned = label.answer(feature.respond(label.opening()))
    assert torch.equal(answer.clean.tensors["gradient"], turned.clean.tensors["gradient"])


def test_a_defence_may_not_drop_examples_that_both_parties_agreed_on():
    feature, label = tables("numbers").parties(defence=Changing(dropped=3))
    with pytest.raises(Refusal, match="test_changing changes how many examples a batch has"):
        label.respond(feature.respond(label.opening()))
    assert label.step == 0


def test_a_defence_sees_the_labels_and_draws_from_the_step_s_stream():
    table = tables("numbers")
    feature, label = table.parties(defence=Watching())
    answer = label.answer(feature.respond(label.opening()))
    assert torch.equal(label.local.memory["defence"]["labels"], table.labels[label.order.at(0)])
    assert label.local.notes["positives"] == table.labels[label.order.at(0)].sum()
    noise = torch.rand(16, 9, generator=stream(0, "label-party", 0, "defence"))
    assert torch.equal(answer.sent.tensors["gradient"], answer.clean.tensors["gradient"] + noise)
    assert torch.equal(feature.respond(answer.sent).tensors["activations"], feature._made.detach())


def test_a_defence_that_raises_leaves_the_party_as_it_was():
    feature, label = tables("numbers").parties(Adam(), Watching())
    curve(feature, label, 2)
    message, before = feature.respond(label.opening()), label.state()
    label.local.memory["defence"]["fail"] = 1.0
    with pytest.raises(Refusal, match="This batch cannot be protected"):
        label.respond(message)
    assert same(label.state()["model"], before["model"])
    assert label.step == 2
    label.local.memory["defence"]["fail"] = 0.0
    assert label.respond(message).round == 2


class Counting(Defence):
    """Remembers and notes something, in place too, before it fails at a step."""

    kind: Literal["test_counting"] = "test_counting"
    fails: int = -1

    def on_message(self, message, local):
        local.memory.setdefault("steps", torch.zeros(1)).add_(1)
        local.memory["last"] = {"round": float(message.round)}
        local.notes["count.steps"] = local.memory["steps"].item()
        if message.round == self.fails:
            raise Refusal("This message cannot be protected.")
        return message


registry._classes["defence"].pop("test_counting")


@pytest.mark.parametrize("who", ["feature", "label"])
@pytest.mark.parametrize("fails", [0, 2])
def test_a_defence_that_raises_leaves_no_trace_in_memory_and_notes(who, fails):
    feature, label = tables("numbers").parties(Adam())
    party = feature if who == "feature" else label
    party.defence = Counting(fails=fails)
    with pytest.raises(Refusal, match="This message cannot be protected"):
        curve(feature, label, 4)
    assert party.step == fails
    remembered = {"defence": {"steps": torch.tensor([2.0]), "last": {"round": 1.0}}} if fails else {}
    assert same(flat(party.local.memory), flat(remembered))
    assert party.local.notes == ({"count.steps": 2.0} if fails else {})
    party.defence = Counting()
    curve(feature, label, 4 - fails)
    assert party.local.notes["count.steps"] == (4 if who == "label" else 5)


def test_activations_so_large_that_the_gradient_overflows_are_refused_before_anything_is_learned():
    feature, label = tables("levels").parties()
    message = feature.respond(label.opening())
    weight = label.top.deep.head.weight
    with torch.no_grad():
        weight.mul_(100)
    huge = message.map(lambda tensor: 3e38 * weight[0].detach().sign().expand(tensor.shape))
    before = label.state()
    with pytest.raises(InvalidValue, match="The gradients of label-party in step 0 must be finite numbers"):
        label.respond(huge)
    assert same(label.state()["model"], before["model"])


@pytest.mark.parametrize("defence", [DPSGD(), GaussianNoise(each="step"), Chain(links=(TopK(), DPSGD()))], ids=str)
def test_a_defence_without_a_place_is_refused_and_not_left_out(defence):
    with pytest.raises(Refusal, match=r"split learning has no place for that. Use a defence of messages"):
        tables("numbers").parties(defence=defence)


@pytest.mark.parametrize(
    "defence", [Undefended(), GaussianNoise(), TopK(), Chain(), Chain(links=(TopK(), GaussianNoise()))], ids=str
)
def test_defences_of_messages_have_a_place(defence):
    feature, label = tables("numbers").parties(defence=defence)
    curve(feature, label, 2)
    assert label.step == 2


def test_the_feature_party_may_defend_its_activations():
    table = tables("numbers")
    made = copy.deepcopy(table.made)
    noisy = FeatureParty(
        made.bottom, table.features, Order(len(table.labels), 16, 0), Local("feature-party", 0), defence=GaussianNoise(std=1.0)
    )
    opening = Message(Kind.CUT_GRADIENT, "label-party", "feature-party", -1, {})
    sent = noisy.respond(opening).tensors["activations"]
    noise = sent - noisy._made.detach()
    assert 0.8 < noise.std() < 1.2
    assert torch.equal(noisy.respond(opening).tensors["activations"], sent)
    assert (noisy.local.batch.labels == -1).all()


def test_rows_to_be_scored_are_defended_too_and_leave_no_trace():
    table = tables("numbers")
    feature, _ = table.parties()
    plain = feature.features(table.features)
    with torch.no_grad():
        assert torch.allclose(plain, feature.bottom(table.features), atol=1e-6)
    feature.defence = Chain(links=(Counting(), GaussianNoise(std=0.5)))
    noise = feature.features(table.features) - plain
    assert 0.48 < noise.std() < 0.52
    assert not torch.equal(noise[:16], noise[16:32])
    assert torch.equal(feature.features(table.features) - plain, noise)
    assert (feature.local.memory, feature.local.notes) == ({}, {})
    trained = feature.respond(Message(Kind.CUT_GRADIENT, "label-party", "feature-party", -1, {}))
    sent = trained.tensors["activations"] - feature._made.detach()
    assert not torch.allclose(sent, noise[:16], atol=1e-3)


def test_nothing_is_revealed_by_a_defence_that_reveals_nothing():
    feature, label = tables("numbers").parties()
    assert feature.close() is None
    assert label.close() is None


@settings(deadline=None, max_examples=25)
@given(
    st.integers(1, 40), st.integers(0, 12), st.sampled_from([torch.float32, torch.float64, torch.float16]), st.integers(0, 3)
)
def test_whatever_shape_comes_in_it_is_a_step_or_one_sentence(rows, width, dtype, extra):
    feature, label = tables("numbers").parties()
    message = feature.respond(label.opening())
    sent = message.map(lambda _: torch.ones((rows, width, *(1,) * extra), dtype=dtype))
    if (rows, width, extra) == (16, 9, 0):
        assert label.respond(sent).tensors["gradient"].shape == (16, 9)
    else:
        with pytest.raises(InvalidValue):
            label.respond(sent)
        assert label.step == 0


def test_playing_no_steps_does_nothing():
    feature, label = tables("numbers").parties()
    play(feature, label, label.opening(), 0, lambda *_: pytest.fail("a step was played"))
    assert (feature.step, label.step) == (0, 0)


def test_columns_without_ids_need_no_wide_part():
    made = halves(MLP(hidden=(4,)), Columns.plain(3), 2, seed=0)
    assert made.top.wide is None
