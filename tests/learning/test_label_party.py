"""The label party: the gradient it owes, closed against nonsense from its peer, and what its defence may see and do."""

from __future__ import annotations

import dataclasses
from typing import Literal

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from leaktight.core import registry
from leaktight.core.defence import Chain, Defence, Undefended
from leaktight.core.errors import InvalidValue, Refusal
from leaktight.core.message import Kind
from leaktight.core.random import stream
from leaktight.core.scenario import flatten
from leaktight.core.task import Batch
from leaktight.defences import DPSGD, GaussianNoise, TopK
from leaktight.learning import Adam
from leaktight.learning.task import cross_entropy


def test_the_gradient_is_that_of_the_mean_loss_row_by_row(tables):
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


def test_with_a_linear_top_all_rows_share_one_direction_and_the_label_is_its_sign(tables):
    """Section 2.1: g = (p - y) grad h, so that the gradient's side of the origin is the label."""
    feature, label = tables("levels").parties(batch_size=64)
    answer = label.answer(feature.respond(label.opening()))
    rows, labels = answer.clean.tensors["gradient"], answer.raw.labels
    cosine = torch.nn.functional.normalize(rows) @ torch.nn.functional.normalize(rows[labels == 1][:1]).T
    assert torch.allclose(cosine[:, 0], torch.where(labels == 1, 1.0, -1.0), atol=1e-4)


def test_a_label_party_that_dies_before_its_answer_arrives_repeats_it(tables, curve):
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
def test_nonsense_from_the_feature_party_is_one_sentence_and_training_goes_on(tables, curve, same, wrong):
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
    assert same(flatten(before), flatten(after))
    for _ in range(2):
        message = feature.respond(label.respond(message))
    curve(twin_feature, twin_label, 2)
    assert same(label.top.state_dict(), twin_label.top.state_dict())
    assert same(feature.bottom.state_dict(), twin_feature.bottom.state_dict())


def test_a_checkpoint_with_moments_of_another_kind_changes_nothing(tables, curve, same):
    feature, label = tables("numbers").parties(Adam())
    curve(feature, label, 2)
    before, state = label.state(), label.state()
    state["optimiser"] = dict.fromkeys(state["optimiser"], 1.0)
    state["model"] = {name: tensor + 1 for name, tensor in state["model"].items()}
    with pytest.raises(InvalidValue, match="It differs in `deep"):
        label.restore(state)
    assert same(flatten(before), flatten(label.state()))


def test_another_kind_of_message_is_refused(tables):
    feature, label = tables("numbers").parties()
    message = feature.respond(label.opening())
    with pytest.raises(InvalidValue, match=r"must come in a message of kind `activation`. Got `gradient` instead"):
        label.respond(dataclasses.replace(message, kind=Kind.GRADIENT))


def test_activations_of_another_step_are_refused(tables, curve):
    feature, label = tables("numbers").parties()
    curve(feature, label, 3)
    message = feature.respond(label.opening())
    for step in (0, 1, 9):
        with pytest.raises(InvalidValue, match=f"awaits the activations of step 3. Got those of step {step} instead"):
            label.respond(dataclasses.replace(message, round=step))


def test_labels_of_one_class_are_refused(tables):
    table = tables("numbers")
    table.labels = torch.zeros_like(table.labels)
    with pytest.raises(
        InvalidValue, match=r"The labels of label-party must be of at least 2 classes. Got only 0 instead"
    ):
        table.parties()


class Watching(Defence):
    """Writes down what a label party's defence can see."""

    kind: Literal["test_watching"] = "test_watching"

    def on_message(self, message, local):
        local.memory["labels"] = local.batch.labels.clone()
        local.notes["positives"] = float(local.batch.labels.sum())
        if local.memory.get("fail"):
            raise Refusal("This batch cannot be protected.")
        return message.map(lambda tensor: tensor + local.draws.uniforms(tensor.shape))


class Changing(Defence):
    """Turns labels around, or drops some of them."""

    kind: Literal["test_changing"] = "test_changing"
    dropped: int = 0

    def on_batch(self, batch, local):
        return Batch(batch.inputs[self.dropped :], 1 - batch.labels[self.dropped :])


# Checks over all defences must not find them.
registry._classes["defence"].pop("test_watching")


registry._classes["defence"].pop("test_changing")


def test_a_defence_may_change_the_labels_that_the_gradient_sees(tables):
    table = tables("numbers")
    feature, label = table.parties(defence=Changing())
    answer = label.answer(feature.respond(label.opening()))
    assert torch.equal(answer.used.labels, 1 - answer.raw.labels)
    table.labels = 1 - table.labels
    feature, label = table.parties()
    turned = label.answer(feature.respond(label.opening()))
    assert torch.equal(answer.clean.tensors["gradient"], turned.clean.tensors["gradient"])


def test_a_defence_may_not_drop_examples_that_both_parties_agreed_on(tables):
    feature, label = tables("numbers").parties(defence=Changing(dropped=3))
    with pytest.raises(Refusal, match="test_changing changes how many examples a batch has"):
        label.respond(feature.respond(label.opening()))
    assert label.step == 0


def test_a_defence_sees_the_labels_and_draws_from_the_step_s_stream(tables):
    table = tables("numbers")
    feature, label = table.parties(defence=Watching())
    answer = label.answer(feature.respond(label.opening()))
    assert torch.equal(label.local.memory["defence"]["labels"], table.labels[label.order.at(0)])
    assert label.local.notes["positives"] == table.labels[label.order.at(0)].sum()
    noise = torch.rand(16, 9, generator=stream(0, "label-party", 0, "defence"))
    assert torch.equal(answer.sent.tensors["gradient"], answer.clean.tensors["gradient"] + noise)
    assert torch.equal(feature.respond(answer.sent).tensors["activations"], feature._activations.detach())


def test_a_defence_that_raises_leaves_the_party_as_it_was(tables, curve, same):
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


def test_activations_so_large_that_the_gradient_overflows_are_refused_before_anything_is_learned(tables, same):
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
def test_a_defence_without_a_place_is_refused_and_not_left_out(tables, defence):
    with pytest.raises(Refusal, match=r"split learning has no place for that. Use a defence of messages"):
        tables("numbers").parties(defence=defence)


@pytest.mark.parametrize(
    "defence", [Undefended(), GaussianNoise(), TopK(), Chain(), Chain(links=(TopK(), GaussianNoise()))], ids=str
)
def test_defences_of_messages_have_a_place(tables, curve, defence):
    feature, label = tables("numbers").parties(defence=defence)
    curve(feature, label, 2)
    assert label.step == 2


@settings(deadline=None, max_examples=25)
@given(
    st.integers(1, 40),
    st.integers(0, 12),
    st.sampled_from([torch.float32, torch.float64, torch.float16]),
    st.integers(0, 3),
)
def test_whatever_shape_comes_in_it_is_a_step_or_one_sentence(tables, rows, width, dtype, extra):
    feature, label = tables("numbers").parties()
    message = feature.respond(label.opening())
    sent = message.map(lambda _: torch.ones((rows, width, *(1,) * extra), dtype=dtype))
    if (rows, width, extra) == (16, 9, 0):
        assert label.respond(sent).tensors["gradient"].shape == (16, 9)
    else:
        with pytest.raises(InvalidValue):
            label.respond(sent)
        assert label.step == 0
