from __future__ import annotations

import dataclasses
import itertools

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from leaktight.core import registry
from leaktight.core.errors import InvalidValue, Refusal
from leaktight.core.random import normal_like, stream
from leaktight.core.run import Run
from leaktight.core.task import Batch, Model, Task
from leaktight.learning import classification
from leaktight.models import ConvNet, DLNet, LeNet
from leaktight.models.network import Network
from leaktight.probes import PrivacyScore
from leaktight.probes.privacy_score import privacy_scores
from leaktight.testing import toy_batch, toy_run, toy_task


def literal(
    task: Task, parameters: dict[str, Tensor], image: Tensor, label: int, noise: Tensor, whole: bool, blends: int
) -> float:
    """The formulas as printed: one image, one blend, one backward pass, one number at a time."""

    def gradient(at: Tensor) -> list[Tensor]:
        leaves = {name: tensor.clone().requires_grad_(True) for name, tensor in parameters.items()}
        outputs = torch.func.functional_call(task.model, leaves, (at.unsqueeze(0),))
        loss = F.cross_entropy(outputs, torch.tensor([label]))
        return [one.double().flatten() for one in torch.autograd.grad(loss, list(leaves.values()))]

    def cosine(one: Tensor, other: Tensor) -> float:
        return (one.dot(other) / (one.norm() * other.norm())).item()

    target, curve = gradient(image), []
    for step in range(blends):
        share = step / (blends - 1)
        found = gradient((1 - share) * noise + share * image)
        if whole:
            curve.append(cosine(torch.cat(found), torch.cat(target)))
        else:
            curve.append(sum(map(cosine, found, target)) / len(found))
    area = 0.0
    for before, after in itertools.pairwise(curve):
        area += (before + after) / 2 / (blends - 1)
    return area


def problem(network: Network, shape: tuple[int, ...], count: int = 5) -> tuple[Task, dict[str, Tensor], Batch, Tensor]:
    task = classification(network.build(shape, 4, seed=0), shape, 4)
    rng = stream(0, "problem")
    # Not the model's own parameters: those that are given must be the ones that count.
    parameters = {name: tensor + 0.05 * normal_like(tensor, rng) for name, tensor in task.model.tensors().items()}
    images, noise = torch.rand(2, count, *shape, generator=rng)
    return task, parameters, Batch(images, torch.arange(count) % 4), noise


@pytest.mark.parametrize("similarity", ["whole", "per_tensor"])
@pytest.mark.parametrize(
    ("network", "shape"),
    [
        (DLNet(), (3, 32, 32)),
        (LeNet(), (1, 28, 28)),
        (ConvNet(width=2), (3, 12, 12)),
        (DLNet(activation="tanh"), (1, 9, 9)),
    ],
    ids=str,
)
def test_scores_are_those_of_the_literal_loop(network: Network, shape: tuple[int, ...], similarity: str) -> None:
    task, parameters, batch, noise = problem(network, shape, count=3)
    found = privacy_scores(task, parameters, batch.inputs, batch.labels, noise, similarity)
    for place, score in enumerate(found.tolist()):
        image, label = batch.inputs[place], int(batch.labels[place])
        wanted = literal(task, parameters, image, label, noise[place], similarity == "whole", 21)
        assert score == pytest.approx(wanted, abs=1e-5)


@pytest.mark.parametrize("blends", [2, 3, 8])
def test_any_number_of_blends(blends: int) -> None:
    task, parameters, batch, noise = problem(DLNet(), (1, 8, 8), count=2)
    found = privacy_scores(task, parameters, batch.inputs, batch.labels, noise, blends=blends)
    wanted = [literal(task, parameters, batch.inputs[at], at, noise[at], True, blends) for at in range(2)]
    assert found.tolist() == pytest.approx(wanted, abs=1e-5)


@pytest.mark.parametrize("chunk", [1, 21, 50, 1000])
def test_how_many_are_in_work_at_once_changes_nothing(chunk: int) -> None:
    task, parameters, batch, noise = problem(DLNet(), (1, 8, 8), count=7)
    given = batch.inputs, batch.labels, noise
    assert privacy_scores(task, parameters, *given, chunk=chunk).tolist() == pytest.approx(
        privacy_scores(task, parameters, *given).tolist(), abs=1e-6
    )


def test_an_image_is_scored_by_itself() -> None:
    task, parameters, batch, noise = problem(DLNet(), (1, 8, 8))
    all_at_once = privacy_scores(task, parameters, batch.inputs, batch.labels, noise)
    for at in range(5):
        alone = privacy_scores(
            task, parameters, batch.inputs[at : at + 1], batch.labels[at : at + 1], noise[at : at + 1]
        )
        assert alone.item() == pytest.approx(all_at_once[at].item(), abs=1e-6)


def test_a_linear_model_has_the_area_that_can_be_reckoned() -> None:
    """With equal weights for both classes the gradient is (x, 1) times a constant, so that the curve is the cosine of the inputs."""
    model = Model(nn.Flatten(), nn.Linear(2, 2, bias=False))
    task = classification(model, (1, 1, 2), 2)
    parameters = {"head.weight": torch.zeros(2, 2)}
    image, noise = torch.tensor([[[[1.0, 0.0]]]]), torch.tensor([[[[0.0, 1.0]]]])
    found = privacy_scores(task, parameters, image, torch.tensor([0]), noise, blends=3)
    assert found.item() == pytest.approx((0 + 2 * 0.5**0.5 + 1) / 4)


def test_gradients_of_zero_count_as_no_similarity() -> None:
    task, batch = toy_task(loss_scale=0.0), toy_batch(3)
    assert privacy_scores(task, task.model.tensors(), batch.inputs, batch.labels, batch.inputs).tolist() == [0, 0, 0]


def test_what_stays_home_does_not_count() -> None:
    task, batch = toy_task(), toy_batch(3)
    noise = torch.rand(batch.inputs.shape, generator=stream(1))
    home = dataclasses.replace(task, wire=lambda name: None if name.startswith("head") else name)
    given = task.model.tensors(), batch.inputs, batch.labels, noise
    assert not torch.allclose(privacy_scores(task, *given), privacy_scores(home, *given))


def test_no_images_have_no_scores() -> None:
    task = toy_task()
    none = torch.zeros(0, *task.shape)
    assert privacy_scores(task, task.model.tensors(), none, torch.zeros(0, dtype=torch.long), none).shape == (0,)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            {"noise": torch.zeros(2, 1, 3, 4)},
            "must be one for each of the images of shape \\(3, 1, 3, 4\\). Got noise of shape \\(2",
        ),
        ({"labels": torch.zeros(1)}, "and 1 labels instead"),
        ({"blends": 1}, "at least 2 blends and a chunk of at least 1. Got 1 blends"),
        ({"chunk": 0}, "a chunk of 0 instead"),
    ],
)
def test_wrong_input_is_one_sentence(change: dict[str, object], sentence: str) -> None:
    task, batch = toy_task(), toy_batch(3)
    given = {"images": batch.inputs, "labels": batch.labels, "noise": batch.inputs, **change}
    with pytest.raises(InvalidValue, match=sentence):
        privacy_scores(task, task.model.tensors(), **given)


@pytest.fixture
def run() -> Run:
    return toy_run(rounds=2)


def test_the_probe_scores_public_examples_at_the_latest_parameters(run: Run) -> None:
    [found] = PrivacyScore(samples=8).read(run, stream(0, "score")).readings
    assert (found.name, found.n, found.leaks, len(found.each)) == ("privacy_score", 8, "high", 8)
    assert found.low is not None
    assert found.high is not None
    assert found.low < found.value < found.high
    assert found.value == pytest.approx(sum(found.each) / 8)
    rng = stream(0, "score")
    drawn = torch.randperm(32, generator=rng)[:8]
    noise = torch.rand(8, *run.public.shape, generator=rng)
    examples = run.auxiliary.take(drawn)
    sent = run.public.model_parameters(run.transcript[2].tensors)
    wanted = privacy_scores(run.public, sent, examples.inputs, examples.labels, noise)
    assert list(found.each) == pytest.approx(wanted.tolist())


def test_the_policy_counts_and_nothing_private_is_read(run: Run) -> None:
    plain, changed = (
        PrivacyScore(policy=policy, samples=16).read(run, stream(0)).readings[0] for policy in (None, "0-3")
    )
    assert plain.value != changed.value
    blind = dataclasses.replace(run, truths={}, locals={})
    assert PrivacyScore(policy="0-3", samples=16).read(blind, stream(0)).readings[0] == changed


def test_the_probe_is_found_by_its_kind_and_refuses() -> None:
    made = registry.classes("probe")["privacy_score"].model_validate({"kind": "privacy_score", "policy": "3-1-7+43"})
    assert made == PrivacyScore.model_validate(made.to_dict())
    with pytest.raises(InvalidValue, match=r"0..49. Got 50 instead"):
        PrivacyScore(policy="50")
    with pytest.raises(InvalidValue, match="The `samples` of privacy_score must be at least 2"):
        PrivacyScore(samples=1)
    with pytest.raises(Refusal, match="privacy_score needs public examples"):
        PrivacyScore().read(dataclasses.replace(toy_run(), auxiliary=None), stream(0))
    table = toy_run(task=toy_task(shape=(12,)))
    with pytest.raises(Refusal, match="needs images of shape"):
        PrivacyScore(policy="3").read(table, stream(0))


def test_policies_are_scored_on_the_same_examples_from_the_same_noise(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = PrivacyScore(policy="0-3", samples=4), PrivacyScore(policy="28", samples=4)
    assert one.draws == other.draws == PrivacyScore(samples=4).draws != PrivacyScore(samples=5).draws
    seen = []
    monkeypatch.setattr(
        "leaktight.probes.privacy_score.privacy_scores",
        lambda task, parameters, images, labels, noise, *how: seen.append((labels, noise)) or torch.ones(4),
    )
    for probe in (one, other):
        probe.read(run, stream(0, probe.draws))
    assert all(torch.equal(first, second) for first, second in zip(*seen, strict=True))


def test_the_curve_ends_at_the_image_and_its_area_is_the_score(run: Run) -> None:
    plain, *points = PrivacyScore(samples=8, blends=5, curve=True).read(run, stream(0, "score")).readings
    assert [reading.name for reading in points] == [f"similarity_at_{way}" for way in ("0", "0.25", "0.5", "0.75", "1")]
    values = [reading.value for reading in points]
    assert values[-1] == pytest.approx(1.0)
    assert plain.value == pytest.approx(sum(values[1:-1]) / 4 + (values[0] + values[-1]) / 8)
    [alone] = PrivacyScore(samples=8, blends=5).read(run, stream(0, "score")).readings
    assert alone == plain
