from __future__ import annotations

import dataclasses

import pytest
import torch

from leaktight.core.random import stream
from leaktight.core.task import Batch, Task
from leaktight.learning.gradient import gradient
from leaktight.probes.property_gap import Means, draw_means, property_norms
from leaktight.testing import toy_batch, toy_task

PROPERTIES = torch.tensor([1, 0, 1, 0, 0, 1, 0])


@pytest.fixture
def task() -> Task:
    return toy_task()


@pytest.fixture
def batch() -> Batch:
    return toy_batch(7)


def test_the_gap_is_that_of_two_mean_gradients(task: Task, batch: Batch) -> None:
    found = property_norms(task, task.model.tensors(), batch, draw_means(PROPERTIES, stream(0, "means"), 0, 0))
    has = PROPERTIES.bool()
    sides = [gradient(task, task.model.tensors(), batch.take(side)).tensors for side in (has, ~has)]
    assert list(found) == ["body.1", "head"]
    for layer, rows in found.items():
        one, other = (torch.cat([side[f"{layer}.{name}"].flatten() for name in ("weight", "bias")]) for side in sides)
        middle = (one + other) / 2
        bound = (one - other) / (middle.max() - middle.min())
        expected = bound.norm() / len(bound) ** 0.5, bound.abs().mean(), bound.abs().max()
        assert rows.shape == (1, 3)
        assert rows[0].tolist() == pytest.approx([value.item() for value in expected], rel=1e-4)


def test_each_pair_of_means_has_its_row(task: Task, batch: Batch) -> None:
    means = draw_means(PROPERTIES, stream(0, "means"), 3, 2)
    together = property_norms(task, task.model.tensors(), batch, means)
    for place in range(6):
        one = Means(means.holders[place, None], means.others[place, None])
        for layer, rows in property_norms(task, task.model.tensors(), batch, one).items():
            assert torch.allclose(rows[0], together[layer][place], rtol=1e-5)


@pytest.mark.parametrize("memory", [0, 7 * 4 * 16 * 13])
def test_layers_in_groups_change_nothing(task: Task, batch: Batch, memory: int) -> None:
    means = draw_means(PROPERTIES, stream(0, "means"), 3, 2)
    whole = property_norms(task, task.model.tensors(), batch, means)
    found = property_norms(task, task.model.tensors(), batch, means, memory)
    assert list(found) == list(whole)
    for layer, rows in found.items():
        assert torch.allclose(rows, whole[layer], rtol=1e-5)


def test_wide_layers_are_measured_in_pieces(task: Task, batch: Batch, monkeypatch: pytest.MonkeyPatch) -> None:
    means = draw_means(PROPERTIES, stream(0, "means"), 3, 2)
    whole = property_norms(task, task.model.tensors(), batch, means)
    monkeypatch.setattr("leaktight.probes.property_gap._WIDTH", 5)
    for layer, rows in property_norms(task, task.model.tensors(), batch, means).items():
        assert torch.allclose(rows, whole[layer], rtol=1e-5)


def test_resamples_stay_on_their_side_and_shuffles_do_not() -> None:
    means = draw_means(PROPERTIES, stream(0, "means"), 40, 40)
    for weights in (means.holders, means.others):
        assert torch.allclose(weights.sum(1), torch.ones(81, dtype=torch.float64))
    has = PROPERTIES.bool()
    assert means.holders[:41, ~has].abs().max() == means.others[:41, has].abs().max() == 0
    # A resample of three has multiples of a third; one of two in nine of them has all three once.
    assert torch.allclose(means.holders[:41] * 3, (means.holders[:41] * 3).round())
    assert 0 < (means.holders[1:41].amax(1) < 0.34).sum() < 25
    dealt = means.holders[41:]
    assert ((dealt > 0).sum(1) == 3).all()
    assert (dealt[:, ~has] > 0).any()
    assert ((dealt > 0) != (means.others[41:] > 0)).all()


def test_examples_that_are_all_alike_have_no_gap(task: Task) -> None:
    one = toy_batch(1)
    alike = Batch(one.inputs.repeat(4, 1, 1, 1), one.labels.repeat(4))
    means = draw_means(torch.tensor([1, 1, 0, 0]), stream(0, "means"))
    for rows in property_norms(task, task.model.tensors(), alike, means).values():
        assert rows.abs().max().item() < 1e-5


def test_a_layer_that_stays_home_has_no_row(task: Task, batch: Batch) -> None:
    private = dataclasses.replace(task, wire=lambda name: None if name.startswith("head") else name)
    means = draw_means(PROPERTIES, stream(0, "means"), 0, 0)
    assert list(property_norms(private, task.model.tensors(), batch, means)) == ["body.1"]
