import pytest
import torch
from scipy.stats import binomtest
from sklearn.metrics import accuracy_score
from torch import nn

from leaktight.core.errors import InvalidValue
from leaktight.core.random import stream
from leaktight.core.task import Batch, Model, Task
from leaktight.learning.evaluate import accuracy, majority, utility


def make(body=None):
    model = Model(body or nn.Identity(), nn.Linear(6, 4))
    return Task(model, nn.functional.cross_entropy, lambda outputs: outputs, shape=(6,), classes=4)


@pytest.fixture
def batch():
    rng = stream(0, "batch")
    return Batch(torch.rand(37, 6, generator=rng), torch.randint(4, (37,), generator=rng))


@pytest.fixture
def parameters():
    rng = stream(0, "parameters")
    return {"head.weight": torch.randn(4, 6, generator=rng), "head.bias": torch.randn(4, generator=rng)}


def test_accuracy_agrees_with_scikit_learn():
    rng = stream(1)
    scores, labels = torch.rand(50, 3, generator=rng), torch.randint(3, (50,), generator=rng)
    assert accuracy(scores, labels) == pytest.approx(accuracy_score(labels, scores.argmax(1)))


def test_scores_that_are_not_numbers_are_misses():
    assert accuracy(torch.full((4, 2), float("nan")), torch.tensor([0, 0, 1, 1])) == 0


def test_majority_is_the_share_of_the_most_frequent_label():
    assert majority(torch.tensor([5, 5, 2, 9, 5])) == 0.6
    assert majority(torch.tensor([3])) == 1


@pytest.mark.parametrize("chunk", [1, 10, 37, 512])
def test_utility_is_the_accuracy_whatever_the_chunk(chunk, batch, parameters):
    scores = batch.inputs @ parameters["head.weight"].T + parameters["head.bias"]
    correct = int((scores.argmax(1) == batch.labels).sum())
    (reading,) = utility(make(), parameters, batch, chunk)
    expected = binomtest(correct, 37).proportion_ci(method="wilson")
    assert (reading.name, reading.n, reading.leaks) == ("accuracy", 37, None)
    assert (reading.value, reading.low, reading.high) == pytest.approx((correct / 37, expected.low, expected.high))
    assert reading.chance == majority(batch.labels)


def test_utility_uses_the_tasks_own_prediction(batch, parameters):
    task = make()
    upside_down = Task(task.model, task.loss, lambda outputs: -outputs, task.shape, task.classes)
    scores = batch.inputs @ parameters["head.weight"].T + parameters["head.bias"]
    assert utility(upside_down, parameters, batch)[0].value == accuracy(-scores, batch.labels)


def test_utility_drops_nothing_out_and_leaves_each_part_in_its_mode(batch, parameters):
    body = nn.Sequential(nn.Dropout(0.9), nn.Identity())
    task = make(body)
    task.model.train()
    body[1].eval()
    expected = utility(make(), parameters, batch)
    own, state = {name: value.clone() for name, value in task.model.tensors().items()}, torch.random.get_rng_state()
    assert utility(task, parameters, batch) == expected
    assert [task.model.training, body[0].training, body[1].training] == [True, True, False]
    assert all(torch.equal(own[name], value) for name, value in task.model.tensors().items())
    assert torch.equal(torch.random.get_rng_state(), state)


def test_modes_come_back_after_an_error(batch):
    task = make()
    with pytest.raises(RuntimeError, match="shapes"):
        utility(task, {"head.weight": torch.zeros(4, 5)}, batch)
    assert task.model.training


def test_wrong_arguments_are_errors_in_words(batch, parameters):
    empty = Batch(batch.inputs[:0], batch.labels[:0])
    for call in (lambda: utility(make(), parameters, empty), lambda: majority(empty.labels)):
        with pytest.raises(InvalidValue, match="needs at least one labelled example"):
            call()
    with pytest.raises(InvalidValue, match=r"The `chunk` of utility must be at least 1. Got 0 instead"):
        utility(make(), parameters, batch, chunk=0)
