from __future__ import annotations

import dataclasses

import pytest
import torch

from leaktight.core import registry
from leaktight.core.errors import InvalidValue, Refusal
from leaktight.core.metric import Reading
from leaktight.core.random import stream
from leaktight.core.run import Run
from leaktight.core.task import Batch, Task
from leaktight.learning.bounded_norm import NORMS
from leaktight.learning.gradient import gradient
from leaktight.learning.target_jacobian import target_norms
from leaktight.probes import Sensitivity
from leaktight.probes.public import latest, public_examples
from leaktight.probes.sensitivity import Means, draw_means, property_norms
from leaktight.testing import toy_batch, toy_run, toy_task


@pytest.fixture
def run() -> Run:
    return toy_run(rounds=2)


def with_properties(run: Run, properties: torch.Tensor) -> Run:
    public = toy_batch(len(properties), seed=3)
    return dataclasses.replace(run, auxiliary=Batch(public.inputs, public.labels, properties=properties))


def read(run: Run, samples: int = 16, seed: int = 0) -> dict[tuple[str, str | None], Reading]:
    found = Sensitivity(samples=samples).read(run, stream(seed, "sensitivity")).readings
    made = {(reading.name, reading.layer): reading for reading in found}
    assert len(made) == len(found)
    return made


def test_there_is_a_reading_for_each_norm_and_layer(run: Run) -> None:
    found = read(run)
    assert found.keys() == {
        (f"sensitivity_{norm}{share}", layer)
        for norm in NORMS
        for share in ("", "_share")
        for layer in ("body.1", "head")
    }
    for reading in found.values():
        assert reading.leaks == "high"
        assert (reading.n, reading.chance) == (16, None)
        assert reading.low is not None
        assert reading.high is not None
        assert 0 < reading.low < reading.value < reading.high


def test_values_are_means_over_public_examples_at_the_latest_parameters(run: Run) -> None:
    examples = public_examples(run, "sensitivity", 16, stream(0, "sensitivity"))
    for layer, rows in target_norms(run.public, latest(run, "sensitivity"), examples).items():
        for norm, values in zip(NORMS, rows.T, strict=True):
            reading = read(run)[f"sensitivity_{norm}", layer]
            assert reading.each == pytest.approx(values.tolist())
            assert reading.value == pytest.approx(values.mean().item())


def test_shares_sum_to_one(run: Run) -> None:
    found = read(run)
    for norm in NORMS:
        values = {layer: found[f"sensitivity_{norm}", layer].value for layer in ("body.1", "head")}
        for layer, value in values.items():
            share = found[f"sensitivity_{norm}_share", layer]
            assert share.value == pytest.approx(value / sum(values.values()))
            assert share.each == ()


def test_the_interval_covers_the_mean_over_all_examples(run: Run) -> None:
    truth = read(run, samples=32)["sensitivity_f", "head"].value
    inside = 0
    for seed in range(20):
        found = read(run, samples=8, seed=seed)["sensitivity_f", "head"]
        inside += (found.low or 0) <= truth <= (found.high or 0)
    assert inside >= 14


def test_one_example_alone_has_no_interval(run: Run) -> None:
    for reading in read(dataclasses.replace(run, auxiliary=toy_batch(1))).values():
        assert (reading.n, reading.low, reading.high) == (1, None, None)


def test_gradients_of_zero_have_no_sensitivity() -> None:
    for reading in read(toy_run(task=toy_task(loss_scale=0.0))).values():
        assert reading.value == reading.low == reading.high == 0


def test_the_same_stream_gives_the_same_readings(run: Run) -> None:
    properties = torch.arange(12) % 2
    assert read(with_properties(run, properties)) == read(with_properties(run, properties))


def test_a_property_that_gradients_show_beats_chance(run: Run) -> None:
    """Who has the property is what the head learns."""
    properties = (toy_batch(200, seed=3).labels < 2).long()
    found = read(with_properties(run, properties), samples=100)
    for norm in NORMS:
        assert found[f"property_sensitivity_{norm}", "head"].beats_chance(), norm
        assert found[f"property_sensitivity_{norm}", "head"].n == 100


def test_shares_of_the_property_sum_to_one(run: Run) -> None:
    found = read(with_properties(run, torch.arange(20) % 2))
    for norm in NORMS:
        values = {layer: found[f"property_sensitivity_{norm}", layer].value for layer in ("body.1", "head")}
        for layer, value in values.items():
            assert found[f"property_sensitivity_{norm}_share", layer].value == pytest.approx(
                value / sum(values.values())
            )


def test_a_property_that_means_nothing_does_not(run: Run) -> None:
    beats, beyond = 0, []
    for seed in range(12):
        properties = torch.randperm(40, generator=stream(seed, "properties")) % 2
        found = read(with_properties(run, properties), samples=32, seed=seed)
        for layer in ("body.1", "head"):
            reading = found["property_sensitivity_f", layer]
            assert reading.chance is not None
            beats += reading.beats_chance()
            beyond.append(reading.value / reading.chance)
    assert beats <= 2
    assert sum(beyond) / len(beyond) == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize("properties", [torch.zeros(8), torch.ones(8), torch.tensor([1, 0, 0, 0])])
def test_without_two_of_either_kind_there_is_nothing_to_compare(run: Run, properties: torch.Tensor) -> None:
    assert all(name.startswith("sensitivity_") for name, _ in read(with_properties(run, properties.long())))


def test_at_most_half_of_the_samples_are_of_a_kind(run: Run) -> None:
    found = read(with_properties(run, torch.tensor([1] * 3 + [0] * 20)), samples=12)
    assert {reading.n for (name, _), reading in found.items() if name.startswith("property")} == {3 + 6}


def test_a_run_in_which_nothing_is_public_is_refused(run: Run) -> None:
    with pytest.raises(Refusal, match="sensitivity needs public examples"):
        read(dataclasses.replace(run, auxiliary=None))
    with pytest.raises(Refusal, match="sensitivity needs the parameters of a whole model"):
        read(dataclasses.replace(run, transcript=run.transcript[1:2]))


def test_nothing_private_is_read(run: Run) -> None:
    assert read(dataclasses.replace(run, truths={}, locals={})) == read(run)


def test_it_is_found_by_its_kind() -> None:
    assert registry.classes("probe")["sensitivity"] is Sensitivity
    with pytest.raises(InvalidValue, match="The `samples` of sensitivity must be at least 2"):
        Sensitivity(samples=1)


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
    monkeypatch.setattr("leaktight.probes.sensitivity._WIDTH", 5)
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
